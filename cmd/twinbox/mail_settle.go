package main

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
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
	return settleMails(ctx, to, c.Operator, c.Change, c.IDs, what, "/admin/v1/mails/retry")
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
	return settleMails(ctx, to, c.Operator, c.Change, c.IDs, what, "/admin/v1/mails/mark-sent")
}

func settleMails(
	ctx context.Context, to streams, o Operator, c Change, ids []string, what effect, path string,
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
		return client.Call[adminapi.Result](ctx, s, client.Post(path, request))
	})
}
