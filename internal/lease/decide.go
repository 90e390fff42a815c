package lease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const reopenRows = `
update lease set state = 'pending', attempts = 0, due_at = clock_timestamp(), token = null, ended_at = null
where handler = $1 and event_id = any($2) and state in ('failed', 'skipped', 'uncertain')
returning event_id`

// Reopen puts failed, skipped and uncertain rows back, due at once and with a fresh count of attempts, and returns
// their events.
// Of an uncertain one it is the caller who accepts that the effect may happen twice.
func Reopen(ctx context.Context, tx pgx.Tx, handler string, eventIDs []string) ([]string, error) {
	rows, _ := tx.Query(ctx, reopenRows, handler, eventIDs)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("reopen leases: %w", err)
	}
	return ids, nil
}

const settleRows = `
update lease set state = 'done', ended_at = clock_timestamp(), token = null, error = null
where handler = $1 and event_id = any($2) and state = 'uncertain'
returning event_id, ended_at`

// Settle records of uncertain rows that their effect has happened, and returns them.
func Settle(ctx context.Context, tx pgx.Tx, handler string, eventIDs []string) ([]Settled, error) {
	rows, _ := tx.Query(ctx, settleRows, handler, eventIDs)
	settled, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Settled])
	if err != nil {
		return nil, fmt.Errorf("settle leases: %w", err)
	}
	return settled, nil
}
