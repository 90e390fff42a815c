package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/inbox/pause"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// consumerHandlers pause consumers and let them go on.
type consumerHandlers struct{ Config }

var errNoConsumer = &web.Error{
	Status: http.StatusNotFound, Code: codeNoConsumer, Detail: "This service has no consumer of that name.",
}

// PauseConsumer answers POST /admin/v1/consumers/pause.
func (s consumerHandlers) PauseConsumer(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context, tx pgx.Tx, act action, consumer string) (audit.Action, error) {
		err := pause.Pause(ctx, tx, consumer, act.by, act.reason)
		return audit.Action{Verb: "pause", Before: "running", After: "paused"}, err
	})
}

// ResumeConsumer answers POST /admin/v1/consumers/resume.
func (s consumerHandlers) ResumeConsumer(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context, tx pgx.Tx, _ action, consumer string) (audit.Action, error) {
		ended, err := pause.Resume(ctx, tx, consumer)
		return audit.Action{Verb: "resume", Before: "paused by " + ended.By, After: "running"}, err
	})
}

func (s consumerHandlers) answer(
	w http.ResponseWriter, r *http.Request,
	what func(ctx context.Context, tx pgx.Tx, act action, consumer string) (audit.Action, error),
) {
	answerChange(w, r, func(
		ctx context.Context, act action, request adminapi.ConsumerRequest,
	) (adminapi.Result, error) {
		if !slices.Contains(s.consumerNames(), request.Consumer) {
			return adminapi.Result{}, errNoConsumer
		}
		err := s.change(ctx, act, func(tx pgx.Tx) (audit.Action, error) {
			done, err := what(ctx, tx, act, request.Consumer)
			done.Kind, done.Subject = kindConsumer, request.Consumer
			return done, err
		})
		if err == nil && !act.dryRun && s.Paused != nil {
			s.Paused()
		}
		return adminapi.Result{DryRun: act.dryRun, Count: 1}, err
	})
}
