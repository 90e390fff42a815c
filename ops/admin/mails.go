package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// Mails is the list of mails of a service that sends them.
type Mails interface {
	List(ctx context.Context, q MailQuery) ([]adminapi.Mail, error)
	// Retry and MarkSent return how many mails they settled, and why not the others. A dry run changes nothing.
	Retry(ctx context.Context, ids []uuid.UUID, c MailChange) (adminapi.Result, error)
	MarkSent(ctx context.Context, ids []uuid.UUID, c MailChange) (adminapi.Result, error)
}

// MailQuery picks mails; what is empty picks all.
type MailQuery struct {
	State, UserID, EventID string
	Since, Until           time.Time
	Recipient              bool // whether to show addresses
	Limit                  int
	After                  uuid.UUID
}

// MailChange says who settles mails and why.
type MailChange struct {
	By, Reason string
	DryRun     bool
}

var errNoMails = &web.Error{
	Status: http.StatusNotFound, Code: codeNoMails, Detail: "This service sends no mails.",
}

// mailHandlers answer what is about the mails.
type mailHandlers struct{ mails Mails }

// ListMails answers GET /admin/v1/mails.
func (s mailHandlers) ListMails(w http.ResponseWriter, r *http.Request, p adminapi.ListMailsParams) {
	answer(w, r, func(ctx context.Context) (adminapi.Mails, error) {
		if s.mails == nil {
			return adminapi.Mails{}, errNoMails
		}
		limit, err := limitOf(p.Limit)
		if err != nil {
			return adminapi.Mails{}, err
		}
		q := MailQuery{
			State: string(value(p.State)), UserID: value(p.UserId), EventID: value(p.EventId), Since: value(p.Since),
			Until: value(p.Until), Recipient: value(p.Recipient), Limit: limit + 1,
		}
		if user, err := uuid.Parse(q.UserID); q.UserID != "" && (err != nil || user.String() != q.UserID) {
			return adminapi.Mails{}, invalidParameter("user_id", "is no lower-case UUID")
		}
		if p.After != nil {
			if q.After, err = uuid.Parse(*p.After); err != nil {
				return adminapi.Mails{}, invalidParameter("after", "is no UUID")
			}
		}
		items, err := s.mails.List(ctx, q)
		return adminapi.Mails{Items: items[:min(len(items), limit)], More: len(items) > limit}, err
	})
}

// RetryMails answers POST /admin/v1/mails/retry.
func (s mailHandlers) RetryMails(w http.ResponseWriter, r *http.Request) {
	s.settle(w, r, Mails.Retry)
}

// MarkMailsSent answers POST /admin/v1/mails/mark-sent.
func (s mailHandlers) MarkMailsSent(w http.ResponseWriter, r *http.Request) {
	s.settle(w, r, Mails.MarkSent)
}

func (s mailHandlers) settle(
	w http.ResponseWriter, r *http.Request,
	how func(Mails, context.Context, []uuid.UUID, MailChange) (adminapi.Result, error),
) {
	answerChange(w, r, func(ctx context.Context, act action, request adminapi.MailRequest) (adminapi.Result, error) {
		if s.mails == nil {
			return adminapi.Result{}, errNoMails
		}
		if len(request.Ids) == 0 || len(request.Ids) > maxLimit {
			return adminapi.Result{}, invalid("ids", "does not hold 1 to 1000 ids")
		}
		ids := make([]uuid.UUID, len(request.Ids))
		for i, text := range request.Ids {
			var err error
			if ids[i], err = uuid.Parse(text); err != nil || ids[i].String() != text {
				return adminapi.Result{}, invalid("ids", "holds what is no lower-case UUID")
			}
		}
		return how(s.mails, ctx, ids, MailChange{By: act.by, Reason: act.reason, DryRun: act.dryRun})
	})
}
