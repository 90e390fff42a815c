package admin

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

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox/relay"
)

const eventColumns = `
select o.position, o.event_id::text, o.event_type as type, o.topic, o.key, o.version, o.occurred_at,
    length(o.payload) as bytes, ` + relay.State + ` as state, `

// The length of a payload is known without reading it.
const tailSQL = eventColumns + `
    case when $5 and sum(length(o.payload)) over (order by o.position desc) <= 8388608 then o.payload end as payload
from public.outbox o cross join public.outbox_cursor c
where o.position >= $6 and o.position < $7
    and ($1 = '' or o.topic = $1) and ($2 = '' or o.key = $2) and ($3 = '' or o.event_type = $3)
order by o.position desc
limit $4`

const keptSQL = `select coalesce(min(position), 0), coalesce(max(position), 0) from public.outbox`

// 200,000 positions take 0.2 s, at a microsecond each.
const tailPositions = 200_000

// readTail returns the newest events in the order of their positions. A transaction that commits late puts its events
// below ones that were read before. One call reads at most 200,000 positions.
func readTail(
	ctx context.Context, db relay.DB, asked adminapi.TailOutboxParams,
) (out adminapi.OutboxEvents, err error) {
	var oldest, newest int64
	if err := db.QueryRow(ctx, keptSQL).Scan(&oldest, &newest); err != nil {
		return out, fmt.Errorf("read positions: %w", err)
	}
	before := newest + 1
	if asked.Before > 0 {
		before = min(before, asked.Before)
	}
	from := before - tailPositions
	out.Items, err = listEvents[adminapi.OutboxEvent](
		ctx, db, tailSQL, asked.Topic, asked.Key, asked.Type, asked.Limit, asked.Payload, from, before)
	slices.Reverse(out.Items)
	if err == nil && len(out.Items) < asked.Limit && from > oldest {
		out.Rest = from
	}
	return out, err
}

// entry is an event with what a story tells of it.
type entry struct {
	adminapi.OutboxEvent
	Correlation string // what it carries, else its own id
	Causation   string // the event from which it follows; empty: none
	TraceParent string // W3C Trace Context; empty: none
}

// trace is what an outbox knows of an id.
type trace struct {
	OfKey []entry // the newest events whose key it is, at most 1000, in the order of their positions
	// Events are those with the id, two if it was given twice. Empty: none was added here, or its partition is dropped.
	Events []entry
	Caused []entry // events that follow from the event, the request or the trace of the id, at most 1000
	// NeedsHint reports that only its key or its time can find the event: its id is no UUIDv7, and the outbox no longer
	// knows when it was given.
	NeedsHint bool
}

const tracedColumns = eventColumns + `null::bytea as payload,
    coalesce(o.headers ->> '` + event.HeaderCorrelationID + `', o.event_id::text) as correlation,
    coalesce(o.headers ->> '` + event.HeaderCausationID + `', '') as causation,
    coalesce(o.headers ->> '` + event.HeaderTraceParent + `', '') as trace_parent
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

// readTrace reads only the blocks where the id may be, never the whole table.
func readTrace(ctx context.Context, db audit.Beginner, id string, hint adminapi.GetStoryParams) (t trace, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		if _, err := tx.Conn().PgConn().Exec(ctx, noScans).ReadAll(); err != nil {
			return fmt.Errorf("trace outbox: %w", err)
		}
		if t.OfKey, err = listEvents[entry](ctx, tx, tracedByKey, id); err != nil {
			return err
		}
		if t.Caused, err = listEvents[entry](ctx, tx, tracedByCause, id); err != nil {
			return err
		}
		switch parsed, wrong := uuid.Parse(id); {
		case wrong != nil: // no id of an outbox
		case parsed.Version() == 7:
			t.Events, err = listEvents[entry](ctx, tx, tracedByID, parsed.String())
		case hint.Key != "":
			t.Events, err = listEvents[entry](ctx, tx, tracedByKeyID, hint.Key, parsed.String())
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
func (t *trace) findForeign(ctx context.Context, tx pgx.Tx, id string, at time.Time) error {
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
	t.Events, err = listEvents[entry](ctx, tx, tracedNearID, first-neighbours, last+neighbours, id)
	return err
}

const neighbours = 10_000

// digit fills the id: 0 gives the lowest UUIDv7 of a millisecond, f the highest.
func idAt(at time.Time, digit string) string {
	ms := max(at.UnixMilli(), 0)
	b := [6]byte{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)}
	return hex.EncodeToString(b[:]) + strings.Repeat(digit, 20)
}

func listEvents[T any](ctx context.Context, db relay.DB, sql string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return found, nil
}
