package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

const insertOrdered = `insert into lease (handler, event_id, key, version) values ($1, $2, $3, $4)`

// IntentInOrder is [Intent] for an effect that must not follow one of a later event of its key, such as a state that is
// told to another system: once an effect of a higher version has begun, this one is skipped, and its row is done with
// that version as superseded_by. A version counts from when its effect begins, also if it then fails.
//
// An effect that has begun is not called back: of two that begin one right after the other, the other side may hear the
// second one first. The event needs a key and a version.
func IntentInOrder(handler string, event cloudevent.Event) (sql string, args []any) {
	return insertOrdered, []any{handler, event.ID, event.Key, event.Version}
}

// SupersededError says that an effect was skipped because a later one of its key had begun.
type SupersededError struct {
	Handler, EventID string
	By               int64 // the version that had begun
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("superseded: the effect of %s on event %s is behind version %d of its key", e.Handler, e.EventID,
		e.By)
}

// The key's row in lease_watermark is where two that begin at once wait for one another: the second one sees what the
// first one has made of it, which the statement's snapshot would not show.
const beginOrdered = `
with mine as (
    select key, version from lease
    where handler = $1 and event_id = $2 and token = $3 and state = 'claimed' and due_at > clock_timestamp()
    for update
), mark as (
    insert into lease_watermark as w (handler, key, version) select $1::text, key, version from mine
    on conflict (handler, key) do update set version = greatest(w.version, excluded.version)
    returning w.version
)
update lease l
set state = case when mark.version > l.version then 'done' else 'submitting' end,
    ended_at = case when mark.version > l.version then clock_timestamp() end,
    superseded_by = case when mark.version > l.version then mark.version end,
    due_at = clock_timestamp() + make_interval(secs => $4)
from mark
where l.handler = $1 and l.event_id = $2 and l.token = $3
returning l.superseded_by`

// beginInOrder is Begin for an effect in the order of its key.
func (c *Claim) beginInOrder(ctx context.Context) error {
	l := c.leases
	var by *int64
	err := l.pool.QueryRow(ctx, beginOrdered, l.handler, c.EventID, c.token, l.settings.Lease.Seconds()).Scan(&by)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c.stale("begin")
	case err != nil:
		return fmt.Errorf("begin: %w", err)
	case by != nil:
		return &SupersededError{Handler: l.handler, EventID: c.EventID, By: *by}
	}
	return nil
}
