// Package audit keeps a record of what people do to a running system: who changed what, when, why, and from which state
// to which. Each action is written in the transaction of the change, so there is no change without its row and no row
// without its change. The table is public.operator_action, of the migration set audit.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is what an operator did to one thing, or to many at once.
type Action struct {
	ID      int64             `json:"id"`   // given by the database
	At      time.Time         `json:"at"`   // given by the database, on its clock
	By      string            `json:"by"`   // who; required
	Verb    string            `json:"verb"` // what, such as replay; required
	Kind    string            `json:"kind"` // of the thing, such as dead_letter; required
	Subject string            `json:"subject"`
	Reason  string            `json:"reason"`
	Before  string            `json:"before"` // the state
	After   string            `json:"after"`
	Count   int64             `json:"count"`            // how many things; 0 means 1
	Detail  map[string]string `json:"detail,omitempty"` // no payload, no address
}

// ErrIncomplete says that an action does not name who did what to which kind of thing.
var ErrIncomplete = errors.New("audit: an action needs By, Verb and Kind")

const insertActions = `
insert into public.operator_action (operator, verb, kind, subject, reason, before, after, affected, detail)
select a.by, a.verb, a.kind, a.subject, a.reason, a.before, a.after, greatest(a.count, 1), coalesce(a.detail, '{}')
from rows from (jsonb_to_recordset($1::jsonb) as (by text, verb text, kind text, subject text, reason text,
    before text, after text, count bigint, detail jsonb)) with ordinality
    as a (by, verb, kind, subject, reason, before, after, count, detail, nth)
order by a.nth`

// Record writes the actions in the caller's transaction, in one statement.
func Record(ctx context.Context, tx pgx.Tx, actions ...Action) error {
	if len(actions) == 0 {
		return nil
	}
	for _, a := range actions {
		if a.By == "" || a.Verb == "" || a.Kind == "" {
			return ErrIncomplete
		}
	}
	if _, err := tx.Exec(ctx, insertActions, actions); err != nil {
		return fmt.Errorf("insert audit rows: %w", err)
	}
	return nil
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
