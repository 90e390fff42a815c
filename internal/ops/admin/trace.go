package admin

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// entry is an event as a story shows it.
type entry struct {
	adminapi.OutboxEvent
	Correlation string // else its own id
	Causation   string // the event from which it follows, or empty
	TraceParent string
}

const tracedColumns = eventColumns + `null::bytea as payload,
    coalesce(o.headers ->> '` + event.HeaderCorrelationID + `', o.event_id::text) as correlation,
    coalesce(o.headers ->> '` + event.HeaderCausationID + `', '') as causation,
    coalesce(o.headers ->> '` + event.HeaderTraceParent + `', '') as trace_parent
from public.outbox o cross join public.outbox_cursor c
where o.topic not like '` + event.CopyPrefix + `%' and `

const (
	// $2 is a key or '', $3 and $4 are positions or 0.
	tracedByID = tracedColumns + `o.event_id = $1::text::uuid and ($2 = '' or o.key = $2)
    and ($4 = 0 or o.position between $3 and $4)
order by o.position limit 10`
	// The parts of the condition are those of the index outbox_key_and_cause.
	tracedByKeyOrCause = `select * from (` + tracedColumns + `(o.key = $1
    or o.headers ->> '` + event.HeaderCausationID + `' = $1
    or o.headers ->> '` + event.HeaderCorrelationID + `' = $1
    or substr(o.headers ->> '` + event.HeaderTraceParent + `', 4, 32) = $1)
    order by o.position desc limit 1000) newest
order by position`
	positionsNear = `select coalesce(min(position), 0), coalesce(max(position), -1) from public.outbox
where event_id between $1::text::uuid and $2::text::uuid`
	givenAt = `select max(added_at) from public.outbox_given_id where event_id = $1::text::uuid`
)

// noScans forces the summaries, also for a partition that was never analysed.
const noScans = `set local enable_seqscan = off; set local enable_indexscan = off; set local enable_indexonlyscan = off;
set local max_parallel_workers_per_gather = 0; set local jit = off; set local plan_cache_mode = force_custom_plan`

// readTrace returns the events with an id, and the newest 1000 whose key it is or that follow from its event, request
// or trace. needsHint: the id has no time, and the outbox does not know when it was given.
func readTrace(
	ctx context.Context, db audit.Beginner, asked adminapi.StoryQuery,
) (found []entry, needsHint bool, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		if _, err := tx.Conn().PgConn().Exec(ctx, noScans).ReadAll(); err != nil {
			return fmt.Errorf("trace outbox: %w", err)
		}
		if parsed, wrong := uuid.Parse(asked.ID); wrong == nil {
			if found, needsHint, err = findByID(ctx, tx, parsed, asked); err != nil {
				return err
			}
		}
		others, err := listEvents[entry](ctx, tx, tracedByKeyOrCause, asked.ID)
		found = append(found, others...)
		return err
	})
	return found, needsHint, err
}

// around allows for different clocks and for people's memory.
const around = time.Minute

const neighbours = 10_000

// findByID searches for an id without a time near events whose ids have about the time.
func findByID(
	ctx context.Context, tx pgx.Tx, id uuid.UUID, hint adminapi.StoryQuery,
) (found []entry, needsHint bool, err error) {
	if id.Version() == 7 || hint.Key != "" {
		found, err = listEvents[entry](ctx, tx, tracedByID, id.String(), hint.Key, 0, 0)
		return found, false, err
	}
	at := &hint.At
	if at.IsZero() {
		if err := tx.QueryRow(ctx, givenAt, id.String()).Scan(&at); err != nil {
			return nil, false, fmt.Errorf("look up given id: %w", err)
		}
	}
	if at == nil {
		return nil, true, nil
	}
	var first, last int64
	err = tx.QueryRow(ctx, positionsNear, idAt(at.Add(-around), "0"), idAt(at.Add(around), "f")).Scan(&first, &last)
	if err != nil {
		return nil, false, fmt.Errorf("look for neighbours: %w", err)
	}
	if last < first { // no event was added then
		return nil, false, nil
	}
	found, err = listEvents[entry](ctx, tx, tracedByID, id.String(), "", first-neighbours, last+neighbours)
	return found, false, err
}

// digit fills the id: 0 gives the lowest UUIDv7 of a millisecond, f the highest.
func idAt(at time.Time, digit string) string {
	ms := max(at.UnixMilli(), 0)
	b := [6]byte{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)}
	return hex.EncodeToString(b[:]) + strings.Repeat(digit, 20)
}
