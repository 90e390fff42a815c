package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// moves are the watermarks that a transaction changes.
type moves struct {
	index    map[string]int
	keys     []string
	from, to []int64
	known    bool // one of them is there already
}

func (m *moves) note(key string, from, to int64, known bool) {
	if i, again := m.index[key]; again {
		m.to[i] = to
		return
	}
	if m.index == nil {
		m.index = make(map[string]int)
	}
	m.index[key] = len(m.keys)
	m.known = m.known || known
	m.keys, m.from, m.to = append(m.keys, key), append(m.from, from), append(m.to, to)
}

// The rows are locked in the order of their keys, so that two of these cannot wait for each other. A watermark that is
// no longer what the decision rested on is left alone, and then the statement fails: it divides by zero.
const advanceWatermarks = `
with moved as (
    insert into public.inbox_watermark as w (consumer, key, version)
    select $1, m.key, m.upto from unnest($2::text[], $3::bigint[]) as m (key, upto) order by m.key
    on conflict (consumer, key) do update set version = excluded.version
    where (w.key, w.version) in (select * from unnest($2::text[], $4::bigint[]))
    returning 1
)
select 1 / (count(*) = cardinality($2::text[]))::int from moved`

const advanceWatermark = `
with moved as (
    insert into public.inbox_watermark as w (consumer, key, version) values ($1, $2, $3)
    on conflict (consumer, key) do update set version = excluded.version where w.version = $4
    returning 1
)
select 1 / count(*) from moved`

// insertWatermarks is for keys of which none has a watermark yet: half the work and a sixth less to log. The statement
// fails by itself where another transaction was faster.
const insertWatermarks = `
insert into public.inbox_watermark (consumer, key, version)
select $1, m.key, m.upto from unnest($2::text[], $3::bigint[]) as m (key, upto) order by m.key`

const insertWatermark = `insert into public.inbox_watermark (consumer, key, version) values ($1, $2, $3)`

// advance takes the keys' rows before any handler runs, so that transactions on one key take turns. It is queued: it
// travels with the handlers' own writes and, as it fails by itself, with the commit.
func (o *keyOrder) advance(ctx context.Context, tx pgx.Tx, m *moves) error {
	var err error
	switch n := len(m.keys); {
	case n == 0:
		return nil
	case n == 1 && !m.known:
		err = queueGuard(ctx, tx, errMoved, insertWatermark, o.consumer, m.keys[0], m.to[0])
	case n == 1:
		err = queueGuard(ctx, tx, errMoved, advanceWatermark, o.consumer, m.keys[0], m.to[0], m.from[0])
	case !m.known:
		err = queueGuard(ctx, tx, errMoved, insertWatermarks, o.consumer, m.keys, m.to)
	default:
		err = queueGuard(ctx, tx, errMoved, advanceWatermarks, o.consumer, m.keys, m.to, m.from)
	}
	if err != nil {
		return fmt.Errorf("advance watermarks: %w", err)
	}
	return nil
}
