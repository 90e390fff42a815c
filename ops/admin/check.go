package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// action is what every change brings along.
type action struct {
	by, reason string
	dryRun     bool
}

// answerChange runs a change that ends soon.
func answerChange[R adminapi.Change](
	w http.ResponseWriter, r *http.Request,
	operation func(ctx context.Context, act action, request R) (adminapi.Result, error),
) {
	answer(w, r, func(ctx context.Context) (adminapi.Result, error) {
		request, act, err := decodeChange[R](w, r)
		if err != nil {
			return adminapi.Result{}, err
		}
		return operation(ctx, act, request)
	})
}

// streamChange runs a long one.
func streamChange[R adminapi.Change](
	w http.ResponseWriter, r *http.Request,
	operation func(ctx context.Context, act action, request R, progress func(int64)) (adminapi.Result, error),
) {
	request, act, err := decodeChange[R](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	stream(w, r, func(ctx context.Context, progress func(int64)) (adminapi.Result, error) {
		return operation(ctx, act, request, progress)
	})
}

func decodeChange[R adminapi.Change](w http.ResponseWriter, r *http.Request) (R, action, error) {
	request, err := web.Decode[R](w, r)
	if err != nil {
		return request, action{}, err
	}
	act, err := newAction(request.Asked())
	return request, act, err
}

// errDryRun rolls a change back that went well.
var errDryRun = errors.New("dry run")

// change runs a change in a transaction, together with the audit row that it returns. A dry run rolls both back: so it
// meets every error that the change would.
func (c Config) change(ctx context.Context, act action, what func(tx pgx.Tx) (audit.Action, error)) error {
	err := pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		row, err := what(tx)
		if err != nil {
			return err
		}
		row.By, row.Reason = act.by, act.reason
		if err := audit.Record(ctx, tx, row); err != nil || !act.dryRun {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

func newAction(by, reason string, dryRun bool) (action, error) {
	if err := checkText("by", by, 100); err != nil {
		return action{}, err
	}
	if err := checkText("reason", reason, 500); err != nil {
		return action{}, err
	}
	return action{by: by, reason: reason, dryRun: dryRun}, nil
}

// checkText accepts one line of text that a reader of the audit sees as it is.
func checkText(member, value string, longest int) error {
	switch {
	case !strings.ContainsFunc(value, isSeen):
		return invalid(member, "is empty")
	case utf8.RuneCountInString(value) > longest:
		return invalid(member, fmt.Sprintf("is longer than %d characters", longest))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, isHidden):
		return invalid(member, "holds control characters or unseen ones, or is not UTF-8")
	}
	return nil
}

func isSeen(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// isHidden says of a character that it is not seen, or turns how others are read. A joiner within a word is neither.
func isHidden(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != nonJoiner && r != joiner
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

func limitOf(limit *int) (int, error) {
	switch {
	case limit == nil:
		return defaultLimit, nil
	case *limit < 1 || *limit > maxLimit:
		return 0, invalidParameter("limit", fmt.Sprintf("is not within 1 to %d", maxLimit))
	}
	return *limit, nil
}

// value is what an optional member or parameter holds, or nothing.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
