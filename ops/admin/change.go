package admin

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// answer runs an operation that ends soon and answers with what it returns.
func answer[T any](w http.ResponseWriter, r *http.Request, operation func(ctx context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), shortTimeout)
	defer cancel()
	value, err := operation(ctx)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteJSON(w, r, http.StatusOK, value)
}

// answerTo runs an operation that ends soon and whose request has a body.
func answerTo[R, T any](
	w http.ResponseWriter, r *http.Request, operation func(ctx context.Context, request R) (T, error),
) {
	answer(w, r, func(ctx context.Context) (T, error) {
		request, err := web.Decode[R](w, r)
		if err != nil {
			var none T
			return none, err
		}
		return operation(ctx, request)
	})
}

// answerChange runs a change that ends soon.
func answerChange[R adminapi.Change](
	w http.ResponseWriter, r *http.Request,
	operation func(ctx context.Context, change audit.Change, request R) (audit.Result, error),
) {
	answerTo(w, r, func(ctx context.Context, request R) (audit.Result, error) {
		return operation(ctx, request.Asked(), request)
	})
}

// changeOne runs a change of one thing, in the transaction of the audit row that it returns.
func changeOne[R adminapi.Change](
	w http.ResponseWriter, r *http.Request, db audit.Beginner,
	what func(ctx context.Context, tx pgx.Tx, request R) (audit.Action, error),
) {
	answerChange(w, r, func(ctx context.Context, change audit.Change, request R) (audit.Result, error) {
		err := change.Make(ctx, db, func(tx pgx.Tx) (audit.Action, error) { return what(ctx, tx, request) })
		return audit.Result{DryRun: change.DryRun, Count: 1}, err
	})
}

// streamChange runs a change that takes long.
func streamChange[R adminapi.Change](
	w http.ResponseWriter, r *http.Request,
	operation func(ctx context.Context, change audit.Change, request R) (audit.Result, error),
) {
	request, err := web.Decode[R](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	stream(w, r, request, func(ctx context.Context, change audit.Change) (audit.Result, error) {
		return operation(ctx, change, request)
	})
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// page is as much of what was found as was asked for, and whether there is more: it was read with a limit of one more.
func page[T any](found []T, limit int) ([]T, bool) {
	return found[:min(len(found), limit)], len(found) > limit
}
