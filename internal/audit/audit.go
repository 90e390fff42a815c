// Package audit stores what operators do to a running system, in public.operator_action (migration set audit).
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is what an operator did.
type Action struct {
	ID      int64             `json:"id"`   // set by the database
	At      time.Time         `json:"at"`   // set by the database
	By      string            `json:"by"`   // who; required
	Verb    string            `json:"verb"` // such as replay; required
	Kind    string            `json:"kind"` // of the thing, such as dead_letter; required
	Subject string            `json:"subject"`
	Reason  string            `json:"reason"`
	Before  string            `json:"before"`
	After   string            `json:"after"`
	Count   int64             `json:"count"`            // of things; if it is not 1, Subject is empty
	Detail  map[string]string `json:"detail,omitempty"` // no payload, no address
}

// DetailDeed is the detail's member with the [Change.Deed].
const DetailDeed = "deed"

// ErrIncomplete means that an action lacks By, Verb or Kind.
var ErrIncomplete = errors.New("audit: an action needs By, Verb and Kind")

const insertAction = `
insert into public.operator_action (operator, verb, kind, subject, reason, before, after, affected, detail)
values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9::jsonb, '{}'))`

// Record writes the actions in the caller's transaction.
func Record(ctx context.Context, tx pgx.Tx, actions ...Action) error {
	if len(actions) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, a := range actions {
		if a.By == "" || a.Verb == "" || a.Kind == "" {
			return ErrIncomplete
		}
		batch.Queue(insertAction,
			a.By, a.Verb, a.Kind, a.Subject, a.Reason, a.Before, a.After, a.Count, a.Detail)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("insert audit rows: %w", err)
	}
	return nil
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Of returns the history of one thing, oldest first.
func Of(ctx context.Context, q Querier, kind, subject string) ([]Action, error) {
	return Find(ctx, q, Filter{Kind: kind, Subject: subject})
}

// Filter selects the actions that meet all its conditions.
type Filter struct {
	By      string    `json:"by,omitempty"`
	Verb    string    `json:"verb,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	Subject string    `json:"subject,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`  // excluded; a deed is of its last action's time
	Limit   int       `json:"limit,omitempty"` // the newest; 0: all
}

// Until is for the end of a deed, which may last an hour. A list groups the newest rows alone, so that it ends in time.
const selectActions = `
with newest as (
    select *, coalesce(detail ->> '` + DetailDeed + `', id::text) as deed from public.operator_action
    where ($1 = '' or operator = $1) and ($2 = '' or verb = $2) and ($3 = '' or kind = $3) and ($4 = '' or subject = $4)
        and at >= $5 and (at < $6::timestamptz + interval '1 hour' or $6 = '0001-01-01 00:00Z')
    order by id desc limit case when $7 > 0 then 500000 end
)
select max(id) as id, max(at), operator, verb, kind, case count(*) when 1 then min(subject) else '' end, reason, before,
    after, sum(affected)::bigint, detail - '` + DetailDeed + `'
from newest
group by deed, operator, verb, kind, reason, before, after, detail
having max(at) < $6 or $6 = '0001-01-01 00:00Z'
order by id desc limit nullif($7, 0)`

// Find returns the selected actions, oldest first. Those of one [Change.Deed] that ended alike are one.
func Find(ctx context.Context, q Querier, f Filter) ([]Action, error) {
	rows, _ := q.Query(ctx, selectActions, f.By, f.Verb, f.Kind, f.Subject, f.Since, f.Until, f.Limit)
	actions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Action])
	if err != nil {
		return nil, fmt.Errorf("read audit rows: %w", err)
	}
	slices.Reverse(actions)
	return actions, nil
}
