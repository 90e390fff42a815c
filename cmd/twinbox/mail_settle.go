package main

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/admin/client"
)

// MailRetry is "twinbox mail retry".
type MailRetry struct {
	Operator `embed:""`
	Change   `embed:""`

	IDs []string `arg:"" name:"id" help:"Mails, as \"mail list\" shows them."`
}

// Run retries the mails.
func (c *MailRetry) Run(ctx context.Context, to streams) error {
	what := effect{done: "Put back", would: "put back", thing: "mail"}
	return settleMails(ctx, to, c.Operator, c.Change, c.IDs, what,
		func(api *adminapi.Client, r adminapi.MailRequest) (*http.Response, error) {
			return api.RetryMails(ctx, r)
		})
}

// MailMarkSent is "twinbox mail mark-sent".
type MailMarkSent struct {
	Operator `embed:""`
	Change   `embed:""`

	IDs []string `arg:"" name:"id" help:"Mails, as \"mail list\" shows them."`
}

// Run marks the mails as sent.
func (c *MailMarkSent) Run(ctx context.Context, to streams) error {
	what := effect{done: "Marked", would: "mark", thing: "mail", after: "as sent"}
	return settleMails(ctx, to, c.Operator, c.Change, c.IDs, what,
		func(api *adminapi.Client, r adminapi.MailRequest) (*http.Response, error) {
			return api.MarkMailsSent(ctx, r)
		})
}

func settleMails(
	ctx context.Context, to streams, o Operator, c Change, ids []string, what effect,
	call func(api *adminapi.Client, request adminapi.MailRequest) (*http.Response, error),
) error {
	if err := c.check(); err != nil {
		return err
	}
	for _, id := range ids {
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
			return usage(id + " is no id of a mail: a UUID in lower case")
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids))) // one that is given twice is meant once
	services, err := senders(ctx, o)
	if err != nil {
		return err
	}
	request := adminapi.MailRequest{By: c.who(), Reason: c.why(), DryRun: !c.Yes, Ids: ids}
	return whoHasIt(ctx, to, o, services, what, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](s, func(api *adminapi.Client) (*http.Response, error) {
			return call(api, request)
		})
	})
}
