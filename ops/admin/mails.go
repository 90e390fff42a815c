package admin

import (
	"cmp"
	"context"
	"net/http"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/ops/admin/adminapi"
)

// Mails is the list of mails of a service that sends them.
type Mails interface {
	// List returns mails in the order in which they were listed; what is empty in the query picks all.
	List(ctx context.Context, q adminapi.ListMailsParams) ([]adminapi.Mail, error)
	// Retry and MarkSent say how many mails they settled, and why not the others. A dry run changes nothing.
	Retry(ctx context.Context, ids []string, c audit.Change) (audit.Result, error)
	MarkSent(ctx context.Context, ids []string, c audit.Change) (audit.Result, error)
}

// ListMails answers GET /admin/v1/mails.
func (s serviceHandlers) ListMails(w http.ResponseWriter, r *http.Request, p adminapi.ListMailsParams) {
	limit := cmp.Or(p.Limit, defaultLimit)
	p.Limit = limit + 1
	answer(w, r, func(ctx context.Context) (out adminapi.Mails, err error) {
		if s.Mails == nil {
			return out, errNoMails
		}
		mails, err := s.Mails.List(ctx, p)
		out.Items, out.More = page(mails, limit)
		return out, err
	})
}

// RetryMails answers POST /admin/v1/mails/retry.
func (s serviceHandlers) RetryMails(w http.ResponseWriter, r *http.Request) {
	s.settle(w, r, Mails.Retry)
}

// MarkMailsSent answers POST /admin/v1/mails/mark-sent.
func (s serviceHandlers) MarkMailsSent(w http.ResponseWriter, r *http.Request) {
	s.settle(w, r, Mails.MarkSent)
}

func (s serviceHandlers) settle(
	w http.ResponseWriter, r *http.Request,
	how func(Mails, context.Context, []string, audit.Change) (audit.Result, error),
) {
	answerChange(w, r, func(
		ctx context.Context, change audit.Change, request adminapi.MailRequest,
	) (audit.Result, error) {
		if s.Mails == nil {
			return audit.Result{}, errNoMails
		}
		return how(s.Mails, ctx, request.Ids, change)
	})
}
