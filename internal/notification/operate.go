package notification

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/ops"
	"example.com/twinbox/ops/admin"
	"example.com/twinbox/ops/admin/adminapi"
)

// operations is the mail list as the admin listener offers it.
type operations struct{ mails *Mails }

var _ admin.Mails = operations{}

func offerOperations(node *eventing.Node) (prefix string, handler http.Handler, err error) {
	return ops.OfferWithMails(node, operations{NewMails(node.Pool, node.Outbox)})
}

// List is [Mails.List].
func (o operations) List(ctx context.Context, q admin.MailQuery) ([]adminapi.Mail, error) {
	views, err := o.mails.List(ctx, MailFilter{
		State: MailState(q.State), UserID: domain.UserID(q.UserID), EventID: q.EventID, From: q.Since, To: q.Until,
		WithRecipient: q.Recipient, Limit: q.Limit, After: q.After,
	})
	items := make([]adminapi.Mail, len(views))
	for i, v := range views {
		items[i] = adminapi.Mail{
			Id: v.ID.String(), State: adminapi.MailState(v.State), EventId: v.EventID, Template: v.Template,
			UserId: string(v.UserID), Recipient: given(string(v.Recipient)), Attempts: v.Attempts,
			Error: given(v.Error), CreatedAt: v.CreatedAt, DueAt: v.DueAt, SentAt: v.SentAt,
		}
	}
	return items, err
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Retry is [Mails.Retry].
func (o operations) Retry(ctx context.Context, ids []uuid.UUID, c admin.MailChange) (adminapi.Result, error) {
	if c.DryRun {
		return o.would(ctx, ids, MailUncertain, MailFailed)
	}
	n, err := o.mails.Retry(ctx, ids, c.By, c.Reason)
	return settled(n, err)
}

// MarkSent is [Mails.MarkSent].
func (o operations) MarkSent(ctx context.Context, ids []uuid.UUID, c admin.MailChange) (adminapi.Result, error) {
	if c.DryRun {
		return o.would(ctx, ids, MailUncertain)
	}
	n, err := o.mails.MarkSent(ctx, ids, c.By, c.Reason)
	return settled(n, err)
}

// would sorts the mails as a change from these states would, and changes nothing.
func (o operations) would(ctx context.Context, ids []uuid.UUID, from ...MailState) (adminapi.Result, error) {
	n, left, err := o.mails.sort(ctx, ids, from)
	if err != nil {
		return adminapi.Result{DryRun: true}, err
	}
	result, err := settled(n, asError(left))
	result.DryRun = true
	return result, err
}

func asError(left *NotSettledError) error {
	if left == nil {
		return nil
	}
	return left
}

// settled says what was done, and for each mail that stayed as it is why.
func settled(n int, err error) (adminapi.Result, error) {
	result := adminapi.Result{Count: int64(n)}
	left, is := errors.AsType[*NotSettledError](err)
	if !is {
		return result, err
	}
	if n == 0 && len(left.Refused) == 0 {
		return result, &web.Error{Status: 404, Code: "mail_not_found", Detail: "There is no such mail.", Cause: err}
	}
	var failures []adminapi.Failure
	for _, id := range left.Missing {
		failures = append(failures, adminapi.Failure{
			Subject: id.String(), Code: "mail_not_found", Detail: "there is no such mail",
		})
	}
	for id, state := range left.Refused {
		failures = append(failures, adminapi.Failure{
			Subject: id.String(), Code: "mail_not_settled", Detail: fmt.Sprintf("it is %s", state),
		})
	}
	result.Failed, result.Errors = int64(len(failures)), &failures
	return result, nil
}
