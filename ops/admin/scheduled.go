package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/ops/admin/adminapi"
)

// ListScheduled answers GET /admin/v1/outbox/scheduled.
func (s outboxHandlers) ListScheduled(w http.ResponseWriter, r *http.Request, params adminapi.ListScheduledParams) {
	answer(w, r, func(ctx context.Context) (adminapi.ScheduledEvents, error) {
		limit, err := limitOf(params.Limit)
		if err != nil {
			return adminapi.ScheduledEvents{}, err
		}
		events, err := operate.Scheduled(ctx, s.Pool, value(params.Topic), value(params.Key), limit+1)
		out := adminapi.ScheduledEvents{More: len(events) > limit}
		events = events[:min(limit, len(events))]
		out.Items = make([]adminapi.ScheduledEvent, len(events))
		for i, e := range events {
			out.Items[i] = adminapi.ScheduledEvent{
				Name: e.Name, DueAt: e.DueAt, OverdueSeconds: e.Overdue.Seconds(), Type: e.Type, Topic: e.Topic, Key: e.Key,
				Bytes: e.Bytes, ScheduledAt: e.ScheduledAt,
			}
		}
		return out, err
	})
}

// CancelScheduled answers POST /admin/v1/outbox/scheduled/cancel.
func (s outboxHandlers) CancelScheduled(w http.ResponseWriter, r *http.Request) {
	answerChange(w, r, func(
		ctx context.Context, act action, request adminapi.CancelScheduledRequest,
	) (adminapi.Result, error) {
		err := s.change(ctx, act, func(tx pgx.Tx) (audit.Action, error) {
			event, err := operate.CancelScheduled(ctx, tx, request.Name)
			return audit.Action{
				Verb: "cancel", Kind: kindScheduled, Subject: request.Name,
				Before: "due " + event.DueAt.UTC().Format(time.RFC3339), After: "cancelled",
				Detail: map[string]string{"type": event.Type, "topic": event.Topic, "key": event.Key},
			}, err
		})
		return adminapi.Result{DryRun: act.dryRun, Count: 1}, err
	})
}
