// Package audit keeps a record of what people do to a running system: who changed what, when, why, and from which state
// to which. Each action is written in the transaction of the change, so there is no change without its row and no row
// without its change. The table is public.operator_action, of the migration set audit.
package audit

import (
	"context"
	"encoding/json"
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

const insertAction = `
insert into public.operator_action (operator, verb, kind, subject, reason, before, after, affected, detail)
select a.operator, a.verb, a.kind, a.subject, a.reason, a.before, a.after, greatest(a.affected, 1), a.detail::jsonb
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::text[]) with ordinality
    as a (operator, verb, kind, subject, reason, before, after, affected, detail, nth)
order by a.nth`

// Record writes the actions in the caller's transaction, in one statement.
func Record(ctx context.Context, tx pgx.Tx, actions ...Action) error {
	if len(actions) == 0 {
		return nil
	}
	columns := make([][]string, 8)
	counts := make([]int64, len(actions))
	for i, a := range actions {
		if a.By == "" || a.Verb == "" || a.Kind == "" {
			return ErrIncomplete
		}
		detail, err := json.Marshal(a.Detail)
		if err != nil {
			return fmt.Errorf("encode audit detail: %w", err)
		}
		if a.Detail == nil {
			detail = []byte("{}")
		}
		row := []string{a.By, a.Verb, a.Kind, a.Subject, a.Reason, a.Before, a.After, string(detail)}
		for c, value := range row {
			columns[c] = append(columns[c], value)
		}
		counts[i] = a.Count
	}
	_, err := tx.Exec(ctx, insertAction, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5],
		columns[6], counts, columns[7])
	if err != nil {
		return fmt.Errorf("insert audit rows: %w", err)
	}
	return nil
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
