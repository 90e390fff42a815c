// Package trail reads an outbox for operators: its newest events, and the events of an id. It needs no relay.
package trail

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox/relay"
)

// Entry is an event as stored in the outbox.
type Entry struct {
	Position    int64     `json:"position"`
	EventID     string    `json:"event_id"`
	Type        string    `json:"type"`
	Topic       string    `json:"topic"`
	Key         string    `json:"key"`
	Version     int64     `json:"version"`
	OccurredAt  time.Time `json:"occurred_at"`      // business time
	Bytes       int       `json:"bytes"`            // of the payload
	State       string    `json:"state"`            // published, waiting, held or discarded
	Correlation string    `json:"-"`                // what it carries, else its own id
	Causation   string    `json:"-"`                // the event from which it follows; empty: none
	TraceParent string    `json:"-"`                // W3C Trace Context; empty: none
	Payload     []byte    `json:"payload,omitzero"` // only if asked for, and as far as it fits
}

const entryColumns = `
select o.position, o.event_id::text, o.event_type, o.topic, o.key, o.version, o.occurred_at, length(o.payload),
    ` + relay.State + `,
    coalesce(o.headers ->> '` + event.HeaderCorrelationID + `', o.event_id::text),
    coalesce(o.headers ->> '` + event.HeaderCausationID + `', ''),
    coalesce(o.headers ->> '` + event.HeaderTraceParent + `', ''), `

// Tail selects entries. All set conditions must hold.
type Tail struct {
	Topic, Key, Type string
	Before           int64 // of positions below this one; 0: the newest
	Payload          bool  // the newest ones, up to 8 MiB of them
	Limit            int   // how many; below 1 counts as 1
}

// The length of a payload is known without reading it.
const tailSQL = entryColumns + `
    case when $5 and sum(length(o.payload)) over (order by o.position desc) <= 8388608 then o.payload end
from public.outbox o cross join public.outbox_cursor c
where o.position >= $6 and o.position < $7
    and ($1 = '' or o.topic = $1) and ($2 = '' or o.key = $2) and ($3 = '' or o.event_type = $3)
order by o.position desc
limit $4`

const keptSQL = `select coalesce(min(position), 0), coalesce(max(position), 0) from public.outbox`

// 200,000 positions take 0.2 s, at a microsecond each.
const tailPositions = 200_000

// ReadTail returns the newest entries in the order of their positions. A transaction that commits late puts its entries
// below ones that were read before. One call reads at most 200,000 positions. If it found fewer than requested and
// older rows are kept, rest is the Before of the next call; else 0.
func ReadTail(ctx context.Context, db relay.DB, t Tail) (entries []Entry, rest int64, err error) {
	var oldest, newest int64
	if err := db.QueryRow(ctx, keptSQL).Scan(&oldest, &newest); err != nil {
		return nil, 0, fmt.Errorf("read positions: %w", err)
	}
	before, limit := newest+1, max(1, t.Limit)
	if t.Before > 0 {
		before = min(before, t.Before)
	}
	from := before - tailPositions
	entries, err = listEntries(ctx, db, tailSQL, t.Topic, t.Key, t.Type, limit, t.Payload, from, before)
	if err != nil {
		return nil, 0, err
	}
	slices.Reverse(entries)
	if len(entries) < limit && from > oldest {
		rest = from
	}
	return entries, rest, nil
}

// Hint describes an event whose id carries no time. Either field is enough.
type Hint struct {
	Key string
	At  time.Time // when it was added, give or take a minute
}

// Trace is what an outbox knows of an id.
type Trace struct {
	OfKey []Entry // the newest events whose key it is, at most 1000, in the order of their positions
	// Events are those with the id, two if it was given twice. Empty: none was added here, or its partition is dropped.
	Events []Entry
	Caused []Entry // events that follow from the event, the request or the trace of the id, at most 1000
	// NeedsHint reports that only a [Hint] can find the event: its id is no UUIDv7, and the outbox no longer knows when
	// it was given.
	NeedsHint bool
}

const tracedColumns = entryColumns + `null::bytea
from public.outbox o cross join public.outbox_cursor c
where o.topic not like '` + event.CopyPrefix + `%' and `

const (
	tracedByID    = tracedColumns + `o.event_id = $1::text::uuid order by o.position limit 10`
	tracedByKeyID = tracedColumns + `o.key = $1 and o.event_id = $2::text::uuid order by o.position limit 10`
	tracedNearID  = tracedColumns + `o.position between $1 and $2 and o.event_id = $3::text::uuid limit 10`
	tracedByKey   = `select * from (` + tracedColumns + `o.key = $1 order by o.position desc limit 1000) newest
order by position`
	// The parts of the condition are those of the index outbox_key_and_cause.
	tracedByCause = tracedColumns + `(o.headers ->> '` + event.HeaderCausationID + `' = $1
    or o.headers ->> '` + event.HeaderCorrelationID + `' = $1
    or substr(o.headers ->> '` + event.HeaderTraceParent + `', 4, 32) = $1)
order by o.position limit 1000`
	positionsNear = `select coalesce(min(position), 0), coalesce(max(position), -1) from public.outbox
where event_id between $1::text::uuid and $2::text::uuid`
	givenAt = `select added_at from public.outbox_given_id where event_id = $1::text::uuid`
)

// noScans forces the summaries. The planner expects them to be useless for a partition that was never analysed, and
// would read the whole table, or all of it by the index of positions.
const noScans = `set local enable_seqscan = off; set local enable_indexscan = off; set local enable_indexonlyscan = off;
set local max_parallel_workers_per_gather = 0; set local jit = off`

// ReadTrace reads only the blocks where the id may be, never the whole table.
func ReadTrace(
	ctx context.Context, db interface {
		Begin(ctx context.Context) (pgx.Tx, error)
	}, id string, hint Hint,
) (t Trace, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		if _, err := tx.Conn().PgConn().Exec(ctx, noScans).ReadAll(); err != nil {
			return fmt.Errorf("trace outbox: %w", err)
		}
		if t.OfKey, err = listEntries(ctx, tx, tracedByKey, id); err != nil {
			return err
		}
		if t.Caused, err = listEntries(ctx, tx, tracedByCause, id); err != nil {
			return err
		}
		switch parsed, wrong := uuid.Parse(id); {
		case wrong != nil: // no id of an outbox
		case parsed.Version() == 7:
			t.Events, err = listEntries(ctx, tx, tracedByID, parsed.String())
		case hint.Key != "":
			t.Events, err = listEntries(ctx, tx, tracedByKeyID, hint.Key, parsed.String())
		default:
			err = t.findForeign(ctx, tx, parsed.String(), hint.At)
		}
		return err
	})
	return t, err
}

// aroundGiven allows for different clocks of a process and its database; aroundHint for people's memory.
const (
	aroundGiven = 10 * time.Second
	aroundHint  = time.Minute
)

// findForeign searches near the events whose ids carry about that time.
func (t *Trace) findForeign(ctx context.Context, tx pgx.Tx, id string, at time.Time) error {
	around := aroundHint
	if at.IsZero() {
		around = aroundGiven
		switch err := tx.QueryRow(ctx, givenAt, id).Scan(&at); {
		case errors.Is(err, pgx.ErrNoRows):
			t.NeedsHint = true
			return nil
		case err != nil:
			return fmt.Errorf("look up given id: %w", err)
		}
	}
	var first, last int64
	low, high := idAt(at.Add(-around), "0"), idAt(at.Add(around), "f")
	err := tx.QueryRow(ctx, positionsNear, low, high).Scan(&first, &last)
	switch {
	case err != nil:
		return fmt.Errorf("look for neighbours: %w", err)
	case last < first:
		return nil // nothing was added then
	}
	// The row may be next to the first or the last of them.
	t.Events, err = listEntries(ctx, tx, tracedNearID, first-neighbours, last+neighbours, id)
	return err
}

const neighbours = 10_000

// digit fills the id: 0 gives the lowest UUIDv7 of a millisecond, f the highest.
func idAt(at time.Time, digit string) string {
	ms := max(at.UnixMilli(), 0)
	b := [6]byte{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)}
	return hex.EncodeToString(b[:]) + strings.Repeat(digit, 20)
}

func listEntries(ctx context.Context, db relay.DB, sql string, args ...any) ([]Entry, error) {
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return found, nil
}
