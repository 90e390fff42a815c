package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Add adds the events to the caller's transaction, in one statement. They are published after it commits, those of one
// key and topic in the order of their versions, and never if it does not.
//
// It locks the events' keys until the transaction ends, in the order of topic and key, takes each key's next numbers
// and inserts. Two transactions that call it more than once for several keys each may deadlock, like any two that lock
// rows in different orders; PostgreSQL then ends one with 40P01.
//
// Errors: [*EventError] before anything is sent, [ErrVersionConflict] with nothing added, else the database's.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...Event) ([]Added, error) {
	if len(events) == 0 {
		return nil, nil
	}
	b, err := o.batch(events)
	if err != nil {
		return nil, err
	}
	var added []Added
	err = b.within(ctx, tx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, b.sql(), b.args()...)
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		added, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Added, err error) {
			return a, row.Scan(&a.Position, &a.Version)
		})
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		return b.complete(len(added))
	})
	if err != nil {
		return nil, err
	}
	for i := range added { // the statement returns the rows in the order in which it inserts them, that of the call
		added[i].ID = b.ids[i]
	}
	o.count(b)
	return added, nil
}

// exec is [Outbox.Add] for who has only the statement's arguments and wants only the number of rows.
func (b *batch) exec(ctx context.Context, tx pgx.Tx) (tag pgconn.CommandTag, err error) {
	err = b.within(ctx, tx, func(tx pgx.Tx) error {
		if tag, err = tx.Exec(ctx, b.sql(), b.args()...); err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		return b.complete(int(tag.RowsAffected()))
	})
	return tag, err
}

// within runs the statement in a savepoint if it could add some of the events and not the others: a conflict must
// leave nothing behind, even if the caller commits nevertheless. Lock, number and row share the savepoint, so a
// rollback to it takes back all three.
func (b *batch) within(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	if b.unconditional || len(b.keys) == 1 {
		return do(tx)
	}
	return pgx.BeginFunc(ctx, tx, do)
}

func (b *batch) sql() string {
	if b.single() {
		return insertOneSQL
	}
	return insertSQL
}

func (b *batch) complete(inserted int) error {
	if inserted != len(b.ids) {
		return ErrVersionConflict
	}
	return nil
}

// insertOneSQL is insertSQL for one event, the usual case: without arrays the server plans it once per session.
const insertOneSQL = `
with counted as (
    insert into public.outbox_key as k (topic, key, version)
    select $1::text, $2::text, 1
    where $3::bigint < 2 or exists (select from public.outbox_key o where o.topic = $1 and o.key = $2)
    on conflict (topic, key) do update set version = k.version + 1
    where $3 = 0 or k.version = $3 - 1
    returning version
)
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select $4::text::uuid, $5, $6, $1, $2, counted.version, nullif($7, ''), $8, nullif($9::text, '')::jsonb, $10
from counted
returning position, version`

// insertSQL locks and counts the keys, then inserts. Like insertOneSQL it holds the writer's rules, whoever calls it:
//
//   - The upsert locks a key's row before its event gets a position: the event's number comes out of the locked row.
//     Keys arrive sorted, and rows are locked in that order.
//   - The row's version is the committed one, even if the statement had to wait for the lock: "on conflict" looks at
//     the newest row, not at the statement's snapshot.
//   - No row from the upsert (another version than the expected one) means no event of that key. "exists" is for a key
//     that is expected and not there.
//   - The rows of a key are inserted in the order of their versions: the sort ends before the first default is
//     evaluated.
const insertSQL = `
with wanted as (
    select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as w (topic, key, events, base)
), counted as (
    insert into public.outbox_key as k (topic, key, version)
    select topic, key, events from wanted w
    where $5 or base < 1 or exists (select from public.outbox_key o where o.topic = w.topic and o.key = w.key)
    on conflict (topic, key) do update set version = k.version + excluded.version
    where $5 or (select base in (-1, k.version) from wanted w where w.topic = k.topic and w.key = k.key)
    returning topic, key, version
)
insert into public.outbox
    (event_id, event_type, source, topic, key, version, data_schema, occurred_at, headers, payload)
select e.event_id::uuid, e.event_type, e.source, k.topic, k.key, k.version - e.behind, nullif(e.data_schema, ''),
    e.occurred_at, nullif(e.headers, '')::jsonb, e.payload
from unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[],
    $13::timestamptz[], $14::text[], $15::bytea[]) with ordinality as e (event_id, event_type, source, topic, key,
    behind, data_schema, occurred_at, headers, payload, nth)
join counted k on k.topic = e.topic and k.key = e.key
order by e.nth
returning position, version`
