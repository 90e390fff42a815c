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
	Position   int64     `json:"position"`
	EventID    string    `json:"event_id"`
	Type       string    `json:"type"`
	Topic      string    `json:"topic"`
	Key        string    `json:"key"`
	Version    int64     `json:"version"`
	OccurredAt time.Time `json:"occurred_at"`
	Bytes      int       `json:"bytes"`            // of the payload
	State      string    `json:"state"`            // published, waiting, held or discarded
	Payload    []byte    `json:"payload,omitzero"` // only if asked for, and as far as it fits
}

// Tail says which entries to read: the last ones that fit. What is set must all hold.
type Tail struct {
	Topic, Key, Type string
	Before           int64 // of positions below this one; 0: the newest
	Payload          bool  // the newest ones, up to 8 MiB of them
	Limit            int   // how many; below 1 counts as 1
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
    where c.name = $1 and o.position >= $7 and o.position < $8
        and ($2 = '' or o.topic = $2) and ($3 = '' or o.key = $3) and ($4 = '' or o.event_type = $4)
    order by o.position desc
    limit $5
) newest order by position desc`

const keptSQL = `select coalesce(min(position), 0), coalesce(max(position), 0) from public.outbox`

// tailPositions are looked at by one call: 0.2 s, at a microsecond each.
const tailPositions = 200_000

// ReadTail returns the newest entries in the order of their positions. A transaction that commits late puts its
// entries below ones that were read before. One call looks at 200,000 positions at most, however rare a condition is:
// if it found fewer than asked for and older rows are kept, rest is the Before to go on with; else 0.
func ReadTail(ctx context.Context, db DB, t Tail) (entries []Entry, rest int64, err error) {
	return readTail(ctx, db, t, tailPositions)
}

func readTail(ctx context.Context, db DB, t Tail, positions int64) (entries []Entry, rest int64, err error) {
	var oldest, newest int64
	if err := db.QueryRow(ctx, keptSQL).Scan(&oldest, &newest); err != nil {
		return nil, 0, fmt.Errorf("read positions: %w", err)
	}
	before, limit := newest+1, max(1, t.Limit)
	if t.Before > 0 {
		before = min(before, t.Before)
	}
	from := before - positions
	rows, _ := db.Query(ctx, tailSQL, window.CursorName, t.Topic, t.Key, t.Type, limit, t.Payload, from, before)
	entries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, 0, fmt.Errorf("read tail: %w", err)
	}
	slices.Reverse(entries)
	if len(entries) < limit && from > oldest {
		rest = from
	}
	return entries, rest, nil
}
