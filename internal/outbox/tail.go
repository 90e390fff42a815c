package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Entry is an event as it lies in the outbox.
type Entry struct {
	Position   int64
	EventID    string
	Type       string
	Topic, Key string
	Version    int64
	OccurredAt time.Time
	Bytes      int    // of the payload
	State      string // published, waiting, held or discarded
	Payload    []byte // only if asked for
}

// Tail says which entries to read: the last ones that fit. What is set must all hold.
type Tail struct {
	Topic, Key, Type string
	Limit            int // how many; below 1 counts as 1
	Payload          bool
}

const tailSQL = `
select o.position, o.event_id::text, o.event_type, o.topic, o.key, o.version, o.occurred_at, length(o.payload),
    case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
        when exists (select from public.outbox_discarded d where d.position = o.position) then 'discarded'
        when ` + isPublished + ` then 'published' else 'waiting' end,
    case when $6 then o.payload end
from public.outbox o
cross join public.outbox_cursor c
where c.name = $1 and ($2 = '' or o.topic = $2) and ($3 = '' or o.key = $3) and ($4 = '' or o.event_type = $4)
order by o.position desc
limit $5`

// ReadTail returns the newest entries in the order of their positions. A transaction that commits late puts its
// entries below ones that were read before. With a condition that few rows meet it reads all that are kept.
func ReadTail(ctx context.Context, db DB, t Tail) ([]Entry, error) {
	rows, err := db.Query(ctx, tailSQL, cursorName, t.Topic, t.Key, t.Type, max(1, t.Limit), t.Payload)
	if err != nil {
		return nil, fmt.Errorf("read tail: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("read tail: %w", err)
	}
	slices.Reverse(entries)
	return entries, nil
}
