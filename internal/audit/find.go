package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const selectActions = `
select id, at, operator, verb, kind, subject, reason, before, after, affected, detail from public.operator_action `

// Of is the history of one thing, oldest first.
func Of(ctx context.Context, q Querier, kind, subject string) ([]Action, error) {
	return read(ctx, q, selectActions+`where kind = $1 and subject = $2 order by id`, kind, subject)
}

// Filter picks actions. What is empty picks all; what is given must hold together.
type Filter struct {
	By, Verb, Kind, Subject string
	Since, Until            time.Time // Until is excluded
	Newest                  bool      // the last ones that fit, instead of the first
	After                   int64     // the last id of the page before
	Limit                   int
}

const selectPicked = selectActions + `
where ($1 = '' or operator = $1) and ($2 = '' or verb = $2) and ($3 = '' or kind = $3) and ($4 = '' or subject = $4)
    and at >= $5 and (at < $6 or $6 = '0001-01-01 00:00Z') and id > $7`

// Find is what the filter picks, oldest first.
func Find(ctx context.Context, q Querier, f Filter) ([]Action, error) {
	sql := selectPicked + ` order by id limit $8`
	if f.Newest {
		sql = selectPicked + ` order by id desc limit $8`
	}
	actions, err := read(ctx, q, sql, f.By, f.Verb, f.Kind, f.Subject, f.Since, f.Until, f.After, f.Limit)
	if f.Newest {
		slices.Reverse(actions)
	}
	return actions, err
}

func read(ctx context.Context, q Querier, sql string, args ...any) ([]Action, error) {
	rows, _ := q.Query(ctx, sql, args...)
	actions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Action])
	if err != nil {
		return nil, fmt.Errorf("read audit rows: %w", err)
	}
	return actions, nil
}
