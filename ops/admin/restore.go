package admin

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/ops/admin/adminapi"
)

// Restore makes a service go on with a database that was restored.
type Restore interface {
	// ConfirmRestore brings back the events that the broker holds and the database does not know, and lets the relay go
	// on. It returns how many there were. A dry run leaves the broker as it is; the caller rolls tx back.
	ConfirmRestore(ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64)) (int, error)
}

// ConfirmRestore answers POST /admin/v1/outbox/restore/confirm.
func (s outboxHandlers) ConfirmRestore(w http.ResponseWriter, r *http.Request) {
	streamChange(w, r, func(
		ctx context.Context, act action, _ adminapi.ConfirmRestoreRequest, progress func(int64),
	) (adminapi.Result, error) {
		row := audit.Action{Verb: "confirm_restore", Kind: kindOutbox, Before: "restored", After: "confirmed"}
		err := s.change(ctx, act, func(tx pgx.Tx) (audit.Action, error) {
			n, err := s.Restore.ConfirmRestore(ctx, tx, act.dryRun, progress)
			row.Count = int64(n)
			return row, err
		})
		if err != nil {
			return adminapi.Result{DryRun: act.dryRun}, err
		}
		return adminapi.Result{DryRun: act.dryRun, Count: row.Count}, nil
	})
}
