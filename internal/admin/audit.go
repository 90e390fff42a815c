package admin

import (
	"context"
	"net/http"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/audit"
)

// What the audit trail calls the things of an outbox.
const (
	kindOutbox    = "outbox"
	kindOutboxKey = "outbox_key"
	kindTopic     = "topic"
)

// ListAudit answers GET /admin/v1/audit.
func (s *server) ListAudit(w http.ResponseWriter, r *http.Request, params adminapi.ListAuditParams) {
	answer(w, r, func(ctx context.Context) (adminapi.Actions, error) {
		limit, err := limitOf(params.Limit)
		if err != nil {
			return adminapi.Actions{}, err
		}
		rows, err := audit.List(ctx, s.cfg.Pool, string(value(params.Kind)), value(params.After), limit)
		return adminapi.Actions{Items: actionsOf(rows)}, err
	})
}

func actionsOf(rows []audit.Action) []adminapi.Action {
	out := make([]adminapi.Action, len(rows))
	for i, a := range rows {
		out[i] = adminapi.Action{
			Id: a.ID, At: a.At, By: a.By, Verb: a.Verb, Kind: adminapi.ActionKind(a.Kind), Subject: a.Subject, Reason: a.Reason,
			Before: a.Before, After: a.After, Count: a.Count,
		}
	}
	return out
}
