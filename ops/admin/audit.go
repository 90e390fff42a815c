package admin

import (
	"context"
	"net/http"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/ops/admin/adminapi"
)

// What the audit trail calls the things of an outbox and of an inbox.
const (
	kindOutbox    = "outbox"
	kindOutboxKey = "outbox_key"
	kindTopic     = "topic"
	kindConsumer  = "consumer"
	kindScheduled = "scheduled_event"
)

// ListAudit answers GET /admin/v1/audit.
func (s serviceHandlers) ListAudit(w http.ResponseWriter, r *http.Request, params adminapi.ListAuditParams) {
	answer(w, r, func(ctx context.Context) (adminapi.Actions, error) {
		limit, err := limitOf(params.Limit)
		if err != nil {
			return adminapi.Actions{}, err
		}
		newest := value(params.Newest)
		rows, err := audit.Find(ctx, s.Pool, audit.Filter{
			By: value(params.By), Verb: value(params.Verb), Kind: string(value(params.Kind)), Subject: value(params.Subject),
			Since: value(params.Since), Until: value(params.Until), After: value(params.After), Newest: newest,
			Limit: limit + 1,
		})
		more := len(rows) > limit
		if more && newest {
			rows = rows[1:]
		}
		return adminapi.Actions{Items: actionsOf(rows[:min(len(rows), limit)]), More: more}, err
	})
}

func actionsOf(rows []audit.Action) []adminapi.Action {
	out := make([]adminapi.Action, len(rows))
	for i, a := range rows {
		out[i] = adminapi.Action{
			Id: a.ID, At: a.At, By: a.By, Verb: a.Verb, Kind: adminapi.ActionKind(a.Kind), Subject: a.Subject, Reason: a.Reason,
			Before: a.Before, After: a.After, Count: a.Count,
		}
		if len(a.Detail) > 0 {
			out[i].Detail = &a.Detail
		}
	}
	return out
}
