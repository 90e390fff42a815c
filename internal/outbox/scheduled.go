package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ScheduledEvent is an event that is to be added when it is due.
type ScheduledEvent struct {
	Name           string    `json:"name"`
	DueAt          time.Time `json:"due_at"`
	OverdueSeconds float64   `json:"overdue_seconds"` // since it was due, by the database's clock; 0: it is not
	Type           string    `json:"type"`
	Topic          string    `json:"topic"`
	Key            string    `json:"key"`
	Bytes          int       `json:"bytes"`
	ScheduledAt    time.Time `json:"scheduled_at"`
}

const scheduledColumns = `name, due_at, greatest(extract(epoch from clock_timestamp() - due_at), 0)::float8, event_type,
    topic, key, length(payload), scheduled_at`

const listScheduledSQL = `select ` + scheduledColumns + `
from public.outbox_scheduled
where ($1 = '' or topic = $1) and ($2 = '' or key = $2)
order by due_at, name
limit $3`

// Scheduled lists scheduled events of a topic and a key, empty for any, in the order in which they are due.
func Scheduled(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, topic, key string, limit int,
) ([]ScheduledEvent, error) {
	rows, _ := db.Query(ctx, listScheduledSQL, topic, key, limit)
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ScheduledEvent])
	if err != nil {
		return nil, fmt.Errorf("list scheduled events: %w", err)
	}
	return events, nil
}

const cancelSQL = `
delete from public.outbox_scheduled where name = $1
returning ` + scheduledColumns

// Cancel deletes the scheduled event of that name, in the caller's transaction, and returns it. It returns nil if the
// event was never scheduled, was cancelled, or has been added. It waits while the event is being added.
func Cancel(ctx context.Context, tx pgx.Tx, name string) (cancelled *ScheduledEvent, err error) {
	rows, _ := tx.Query(ctx, cancelSQL, name)
	cancelled, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[ScheduledEvent])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("cancel scheduled event: %w", err)
	}
	return cancelled, nil
}
