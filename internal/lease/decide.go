package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const reopenRows = `
update lease set state = 'pending', attempts = 0, due_at = clock_timestamp(), token = null, ended_at = null
where handler = $1 and event_id = any($2) and state in ('failed', 'skipped', 'uncertain')`

// Reopen makes failed, skipped and uncertain rows due now, with all attempts.
func Reopen(ctx context.Context, tx pgx.Tx, handler string, eventIDs []string) error {
	if _, err := tx.Exec(ctx, reopenRows, handler, eventIDs); err != nil {
		return fmt.Errorf("reopen leases: %w", err)
	}
	return nil
}

const skipRows = `
update lease set state = 'skipped', ended_at = clock_timestamp()
where handler = $1 and event_id = any($2) and state = 'failed'`

// SkipFailed marks failed rows as skipped. Their error stays.
func SkipFailed(ctx context.Context, tx pgx.Tx, handler string, eventIDs []string) error {
	if _, err := tx.Exec(ctx, skipRows, handler, eventIDs); err != nil {
		return fmt.Errorf("skip leases: %w", err)
	}
	return nil
}

// Settled is a row that [Settle] marked as done.
type Settled struct {
	EventID string
	At      time.Time // the database's clock
}

const settleRows = `
update lease set state = 'done', ended_at = clock_timestamp(), token = null, error = null
where handler = $1 and event_id = any($2) and state = 'uncertain'
returning event_id, ended_at`

// Settle marks uncertain rows as done and returns them.
func Settle(ctx context.Context, tx pgx.Tx, handler string, eventIDs []string) ([]Settled, error) {
	rows, _ := tx.Query(ctx, settleRows, handler, eventIDs)
	settled, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Settled])
	if err != nil {
		return nil, fmt.Errorf("settle leases: %w", err)
	}
	return settled, nil
}
