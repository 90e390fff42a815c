package main

import (
	"context"

	"example.com/twinbox/ops/admin/client"
)

// MailCommands are "twinbox mail ...".
type MailCommands struct {
	List     MailList     `cmd:"" aliases:"ls" help:"The mails that wait for an operator's decision: uncertain and failed ones."`
	Retry    MailRetry    `cmd:"" help:"Send uncertain or failed mails again. An uncertain one may then arrive twice."`
	MarkSent MailMarkSent `cmd:"" help:"Settle uncertain mails of which you know that they arrived."`
}

// senders are the services that send mails.
func senders(ctx context.Context, o Operator) ([]*client.Service, error) {
	services, err := o.connect()
	if err != nil {
		return nil, err
	}
	answers, err := askWho(ctx, services)
	var some []*client.Service
	for _, a := range answers {
		if a.value.Mails {
			some = append(some, a.service)
		}
	}
	switch {
	case len(some) > 0:
		return some, nil
	case err != nil: // the one that was not reached may be the one that sends
		return nil, err
	}
	return nil, usage("the services asked send no mails")
}
