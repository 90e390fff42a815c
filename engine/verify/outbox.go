package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/outbox/window"
)

// DB is a pool. What is read is read a page at a time, each in a statement of its own: no transaction stays open that
// would keep a table partition from being dropped.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

var (
	// ErrStandby means that the database is a standby: it may be behind what it has published.
	ErrStandby = errors.New("verify: the database is a standby; ask the primary")
	// ErrRestoring means that the outbox was restored and the relay has not yet published what the restore left.
	ErrRestoring = errors.New("verify: a restore is still being published")
)

const selectStanding = `
select pg_is_in_recovery(), old_done is not null or restored is not null
    or sysid is distinct from (select system_identifier from pg_control_system())
from public.outbox_cursor where name = $1`

func checkStanding(ctx context.Context, db DB) error {
	var standby, restoring bool
	err := db.QueryRow(ctx, selectStanding, window.CursorName).Scan(&standby, &restoring)
	switch {
	case err != nil:
		return fmt.Errorf("read cursor: %w", err)
	case standby:
		return ErrStandby
	case restoring:
		return ErrRestoring
	}
	return nil
}

// What became of a row is read with it, in one statement: it is published if the cursor has passed it and it is neither
// held nor discarded.
const selectRows = `
select o.position, o.event_id::text, o.event_type, o.source, o.topic, o.key, o.version, coalesce(o.data_schema, ''),
    o.occurred_at, o.headers, o.payload,
    case when exists (select from public.outbox_held h where h.position = o.position) then 2
        when exists (select from public.outbox_discarded d where d.position = o.position) then 3
        when ` + window.IsPublished + ` then 0 else 1 end
from public.outbox o cross join public.outbox_cursor c
where c.name = $1 and o.position > $2 and ($3::timestamptz is null or o.occurred_at >= $3)
order by o.position limit $4`

const pageRows = 5000

// outboxRow is a row as it is read; it is not kept.
type outboxRow struct {
	position int64
	event    cloudevent.Event
	state    rowState
}

func (r *outboxRow) scan(rows pgx.Rows) error {
	var headers []byte
	e := &r.event
	err := rows.Scan(&r.position, &e.ID, &e.Type, &e.Source, &e.Topic, &e.Key, &e.Version, &e.DataSchema, &e.Time,
		&headers, &e.Data, &r.state)
	if err == nil && headers != nil {
		err = json.Unmarshal(headers, &e.Extensions)
	}
	return err
}

// readRows calls each for the rows of the outbox, in the order of their positions.
func readRows(ctx context.Context, db DB, since *time.Time, each func(*outboxRow)) error {
	for after := int64(0); ; {
		rows, _ := db.Query(ctx, selectRows, window.CursorName, after, since, pageRows)
		n := 0
		for rows.Next() {
			var r outboxRow
			if err := r.scan(rows); err != nil {
				rows.Close()
				return fmt.Errorf("read outbox row: %w", err)
			}
			n, after = n+1, r.position
			each(&r)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read outbox: %w", err)
		}
		if n < pageRows {
			return nil
		}
	}
}

// selectHorizon is asked after the rows: a table partition that is dropped between the two must count as dropped.
const selectHorizon = `
select coalesce((
        select min((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(-?\d+)''?\)'))[1]::bigint)
        from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'public.outbox'::regclass), 1) > 1,
    coalesce((select o.event_id::text from public.outbox o order by o.position limit 1), ''),
    coalesce((select o.occurred_at from public.outbox o order by o.position limit 1), clock_timestamp()),
    exists (select from public.operator_action where verb = 'confirm_restore'),
    exists (select from public.operator_action where kind = 'topic' and verb = 'confirm')`

func (v *producedView) readHorizon(ctx context.Context, db DB) error {
	var id string
	var at time.Time
	err := db.QueryRow(ctx, selectHorizon).Scan(&v.dropped, &id, &at, &v.restored, &v.moved)
	if err != nil {
		return fmt.Errorf("read outbox horizon: %w", err)
	}
	v.rowsFrom = earliest(id, at)
	return nil
}

const selectSpread = `select topic, partitions from public.outbox_topic`

// readSpread is over how many partitions the relay spreads the keys of each topic.
func readSpread(ctx context.Context, db DB) (map[string]int32, error) {
	spread := map[string]int32{}
	rows, _ := db.Query(ctx, selectSpread)
	var topic string
	var partitions int32
	_, err := pgx.ForEachRow(rows, []any{&topic, &partitions}, func() error {
		spread[topic] = partitions
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read partition counts: %w", err)
	}
	return spread, nil
}

const selectSize = `
select coalesce(max(position), 0) - coalesce(min(position), 0) from public.outbox`

// outboxSize is about how many rows there are, from the range of their positions.
func outboxSize(ctx context.Context, db DB) (n int64, err error) {
	if err = db.QueryRow(ctx, selectSize).Scan(&n); err != nil {
		return 0, fmt.Errorf("measure outbox: %w", err)
	}
	return n, nil
}
