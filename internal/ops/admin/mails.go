package admin

import (
	"context"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// Mails is the list of mails of a service that sends them.
type Mails interface {
	// List returns mails in the order in which they were listed; an empty condition picks all.
	List(ctx context.Context, q adminapi.ListMailsParams) ([]adminapi.Mail, error)
	// Retry and MarkSent return how many mails they settled, and why not the others. A dry run changes nothing.
	Retry(ctx context.Context, ids []string, c audit.Change) (audit.Result, error)
	MarkSent(ctx context.Context, ids []string, c audit.Change) (audit.Result, error)
}

func (s handlers) mails(ctx context.Context, asked adminapi.ListMailsParams) (out adminapi.Mails, err error) {
	if s.Mails == nil {
		return out, errNoMails
	}
	out.Items, out.More, err = page(asked.Limit, func(limit int) ([]adminapi.Mail, error) {
		asked.Limit = limit
		return s.Mails.List(ctx, asked)
	})
	return out, err
}

func (s handlers) settle(
	how func(Mails, context.Context, []string, audit.Change) (audit.Result, error),
) changing[adminapi.MailRequest] {
	return func(ctx context.Context, change audit.Change, asked adminapi.MailRequest) (audit.Result, error) {
		if s.Mails == nil {
			return audit.Result{}, errNoMails
		}
		return how(s.Mails, ctx, asked.Ids, change)
	}
}
