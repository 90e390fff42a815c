package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// Restore makes a service go on with a database that was restored.
type Restore interface {
	// Confirm brings back the events that the broker holds and the database does not know, and lets the relay go on. It
	// returns how many there were. A dry run leaves the broker as it is; the caller rolls tx back.
	Confirm(ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64)) (int, error)
}

// ErrConsuming means that an instance of the service still consumes.
var ErrConsuming = errors.New("an instance of the service consumes")

// ConfirmRestore answers POST /admin/v1/outbox/restore/confirm.
func (s *server) ConfirmRestore(w http.ResponseWriter, r *http.Request) {
	request, err := web.Decode[adminapi.ConfirmRestoreRequest](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	act, err := newAction(request.By, request.Reason, request.DryRun)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	stream(w, r, func(ctx context.Context, progress func(int64)) (adminapi.Result, error) {
		result := adminapi.Result{DryRun: act.dryRun}
		err := s.change(ctx, act, func(tx pgx.Tx) error {
			n, err := s.cfg.Restore.Confirm(ctx, tx, act.dryRun, progress)
			if err != nil {
				return err
			}
			result.Count = int64(n)
			return audit.Record(ctx, tx, audit.Action{
				By: act.by, Reason: act.reason, Verb: "confirm_restore", Kind: kindOutbox, Before: "restored",
				After: "confirmed", Count: int64(n),
			})
		})
		if err != nil {
			result.Count = 0
		}
		return result, err
	})
}
