package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Partitions selects the table partitions of the outbox, each with its range of positions, upper not included.
const Partitions = `
select p.relname, bound[1]::bigint as lower, bound[2]::bigint as upper
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
join pg_namespace n on n.oid = p.relnamespace and n.nspname = 'public'
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') as bound
where i.inhparent = 'public.outbox'::regclass and bound is not null`

const (
	// partitionsAhead is the writers' room while no relay runs, in whole table partitions.
	partitionsAhead = 4
	// maxChanges bounds the creations and the drops at a time: events wait for them.
	maxChanges = 8
	// maxForgotten bounds the given ids that a round deletes. With more of them the next round continues.
	maxForgotten = 10_000
)

// Publishing continues when maintain fails: there is room for a while.
func (l *leader) maintain(ctx context.Context) error {
	if time.Now().Before(l.maintainAt) {
		return nil
	}
	l.maintainAt = time.Now().Add(l.cfg.maintainEvery)
	err := l.changePartitions(ctx)
	if err == nil || errors.Is(err, errDeposed) || l.conn.IsClosed() {
		return err
	}
	l.metrics.neglected.Inc()
	l.cfg.Log.Warn("partitions not maintained", "error", err)
	return nil
}

const roomSQL = `
select coalesce(max(upper), 1), coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)
from (` + Partitions + `) p`

// expiredSQL leaves a table partition in which a parked key has rows, and one without a point behind it.
const expiredSQL = `
with published as (
    select p.* from (` + Partitions + `) p where upper <= $1
), noted as (
    insert into public.outbox_partition (upper_bound) select upper from published
    on conflict (upper_bound) do nothing
)
select p.relname
from published p
join public.outbox_partition note on note.upper_bound = p.upper
where note.published_at < clock_timestamp() - $2 * interval '1 microsecond'
    and not exists (select from public.outbox_held h where h.position >= p.lower and h.position < p.upper)
    and ($4 or exists (select from public.outbox_point where position >= p.upper - 1))
order by p.upper limit $3`

const forgetIDsSQL = `
delete from public.outbox_given_id where event_id = any (array(
    select event_id from public.outbox_given_id
    where added_at < statement_timestamp() - $1 * interval '1 microsecond' order by added_at limit $2))`

// rollSQL raises the sequence to the end of a table partition that has rows from before the retention. Else a service
// with few events would keep them until a whole partition is full. Writers get no position from the margin, so they
// cannot be there already.
const rollSQL = `
select public.outbox_repair_sequence(greatest(p.upper - 1, $1::bigint + $2::bigint))
from (` + Partitions + `) p
where p.lower <= $1 and p.upper - 1 > $1
    and exists (select from public.outbox_point o where o.position >= p.lower and o.position < p.upper
        and o.at < clock_timestamp() - $3 * interval '1 microsecond')`

const thinPointsSQL = `
delete from public.outbox_point p
using (select position, row_number() over (partition by date_trunc('hour', at) order by position desc) as n
    from public.outbox_point where at < clock_timestamp() - interval '1 hour' and position > 0) old
where p.position = old.position and old.n > 1`

func (l *leader) changePartitions(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	var upper, head int64
	if err := l.conn.QueryRow(ctx, roomSQL).Scan(&upper, &head); err != nil {
		return fmt.Errorf("read room in partitions: %w", err)
	}
	for n := 0; upper-head <= partitionsAhead*l.cfg.PartitionSize && n < maxChanges; n++ {
		if err := l.createPartition(ctx, upper); err != nil {
			return err
		}
		upper += l.cfg.PartitionSize
	}
	forgotten, err := l.conn.Exec(ctx, forgetIDsSQL, l.cfg.IDRetention.Microseconds(), maxForgotten)
	if err != nil {
		return fmt.Errorf("forget given ids: %w", err)
	}
	if forgotten.RowsAffected() == maxForgotten {
		l.maintainAt = time.Time{}
	}
	if head < l.head { // the sequence was set back: until the poll repairs it, old partitions may get new rows
		return nil
	}
	if _, err := l.conn.Exec(ctx, thinPointsSQL); err != nil {
		return fmt.Errorf("thin points: %w", err)
	}
	retention := max(l.cfg.Retention, 2*l.cfg.PublishTimeout).Microseconds()
	if _, err := l.conn.Exec(ctx, rollSQL, head, l.cfg.PartitionSize/10, retention); err != nil {
		return fmt.Errorf("begin a new partition: %w", err)
	}
	rows, _ := l.conn.Query(ctx, expiredSQL, l.publishedTo(), retention, maxChanges, l.ends == nil)
	expired, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find expired partitions: %w", err)
	}
	for _, name := range expired {
		if err := l.dropPartition(ctx, name); err != nil {
			return err // the others would wait as long each for the same lock
		}
	}
	return nil
}

const createPartitionSQL = `
select public.outbox_create_partition($1, $2) from set_config('lock_timeout', '1s', true)`

// createPartition does not lock the outbox against its writers. The function has the right to it; the session has not.
func (l *leader) createPartition(ctx context.Context, lower int64) error {
	upper := lower + l.cfg.PartitionSize
	create := &pgx.Batch{}
	create.Queue(createPartitionSQL, lower, upper)
	if err := l.guarded(ctx, create, nil); err != nil {
		return fmt.Errorf("create partition from %d: %w", lower, err)
	}
	l.cfg.Log.Info("partition created", "from", lower, "to", upper)
	return nil
}

const forgetPointsBelowSQL = `
delete from public.outbox_point where position < (select upper - 1 from (` + Partitions + `) p where relname = $1)`

const dropPartitionSQL = `
select public.outbox_drop_partition($1) from set_config('lock_timeout', '200ms', true)`

// dropPartition waits for writers only briefly: it locks the whole outbox, and other writers wait behind it.
func (l *leader) dropPartition(ctx context.Context, name string) error {
	drop := &pgx.Batch{}
	drop.Queue(forgetPointsBelowSQL, name)
	drop.Queue(dropPartitionSQL, name)
	if err := l.guarded(ctx, drop, nil); err != nil {
		return fmt.Errorf("drop partition %s: %w", name, err)
	}
	l.cfg.Log.Info("partition dropped", "name", name)
	return nil
}
