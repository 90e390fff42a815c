package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox/window"
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
	Payload    []byte // only if asked for, and as far as it fits
}

// Tail says which entries to read: the last ones that fit. What is set must all hold.
type Tail struct {
	Topic, Key, Type string
	Limit            int  // how many; below 1 counts as 1
	Payload          bool // the newest ones, up to 8 MiB of them
}

// The length of a payload is known without reading it, so that what is left out is not read.
const tailSQL = `
select position, event_id, event_type, topic, key, version, occurred_at, bytes, state,
    case when $6 and sum(bytes) over (order by position desc) <= 8388608 then payload end
from (
    select o.position, o.event_id::text as event_id, o.event_type, o.topic, o.key, o.version, o.occurred_at,
        length(o.payload) as bytes,
        case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
            when exists (select from public.outbox_discarded d where d.position = o.position) then 'discarded'
            when ` + window.IsPublished + ` then 'published' else 'waiting' end as state,
        o.payload
    from public.outbox o
    cross join public.outbox_cursor c
    where c.name = $1 and ($2 = '' or o.topic = $2) and ($3 = '' or o.key = $3) and ($4 = '' or o.event_type = $4)
    order by o.position desc
    limit $5
) newest order by position desc`

// ReadTail returns the newest entries in the order of their positions. A transaction that commits late puts its
// entries below ones that were read before. With a condition that few rows meet it reads all that are kept.
func ReadTail(ctx context.Context, db DB, t Tail) ([]Entry, error) {
	rows, _ := db.Query(ctx, tailSQL, window.CursorName, t.Topic, t.Key, t.Type, max(1, t.Limit), t.Payload)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("read tail: %w", err)
	}
	slices.Reverse(entries)
	return entries, nil
}
