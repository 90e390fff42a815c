package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// partition is a range of positions: from lower to upper, upper not included.
type partition struct {
	name         string
	lower, upper int64
}

// maxChanges bounds how many partitions one look creates, and how many it drops: the relay has events to publish.
const maxChanges = 8

// maintain keeps room ahead of the writers, drops what is published and old enough, and forgets old ids.
func (l *leader) maintain(ctx context.Context) error {
	partitions, err := l.partitions(ctx)
	if err != nil {
		return err
	}
	upper := int64(1)
	if n := len(partitions); n > 0 {
		upper = partitions[n-1].upper
	}
	var head int64
	if err := l.conn.QueryRow(ctx, headSQL).Scan(&head); err != nil {
		return fmt.Errorf("read sequence head: %w", err)
	}
	room := l.cfg.PartitionSize * int64(l.cfg.PartitionsAhead)
	for n := 0; upper-head <= room && n < maxChanges; n++ {
		if err := l.createPartition(ctx, upper, upper+l.cfg.PartitionSize); err != nil {
			return err
		}
		upper += l.cfg.PartitionSize
	}
	if err := l.dropPublished(ctx, partitions); err != nil {
		return err
	}
	return l.forgetIDs(ctx)
}

const headSQL = `select coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)`

const partitionsSQL = `
select p.relname, bound[1]::bigint, bound[2]::bigint
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
join pg_namespace n on n.oid = p.relnamespace and n.nspname = 'public'
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') as bound
where i.inhparent = 'public.outbox'::regclass and bound is not null
order by 3`

func (l *leader) partitions(ctx context.Context) ([]partition, error) {
	rows, err := l.conn.Query(ctx, partitionsSQL)
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p partition, err error) {
		return p, row.Scan(&p.name, &p.lower, &p.upper)
	})
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return list, nil
}

const createPartitionSQL = `select public.outbox_create_partition($1, $2)`

// createPartition does not lock the outbox against its writers. The function does what this session has no right to.
func (l *leader) createPartition(ctx context.Context, lower, upper int64) error {
	fault.Here("relay.partition.before_create")
	err := l.term.within(ctx, l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '1s'`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createPartitionSQL, lower, upper)
		return err
	})
	if err != nil {
		return fmt.Errorf("create partition from %d: %w", lower, err)
	}
	l.log.Info("partition created", "from", lower, "to", upper)
	return nil
}

const notePublishedSQL = `
insert into public.outbox_partition (upper_bound) select unnest($1::bigint[])
on conflict do nothing`

// expiredSQL keeps a partition in which a parked key has rows, and passes over notes of partitions that somebody else
// has taken away.
const expiredSQL = `
select upper_bound from public.outbox_partition p
where published_at < clock_timestamp() - $1 * interval '1 microsecond' and upper_bound = any ($3)
    and not exists (select from public.outbox_held h where h.position < p.upper_bound
        and h.position >= (select min(lower) from unnest($2::bigint[], $3::bigint[]) as x (lower, upper)
            where x.upper = p.upper_bound))
order by 1 limit $4`

// dropPublished (step 9) drops whole partitions, which costs no vacuum. A partition is wholly published if it ends at
// or below the head of the newest landmark that is older than every transaction running in done: whatever is not
// visible in done lies above.
func (l *leader) dropPublished(ctx context.Context, partitions []partition) error {
	if l.reader.old != nil {
		return nil // a restore's rows are not all out
	}
	published := l.reader.marks.below(l.reader.done.xmin)
	byUpper := map[int64]partition{}
	var lowers, uppers []int64
	for _, p := range partitions {
		if p.upper <= published {
			byUpper[p.upper] = p
			lowers, uppers = append(lowers, p.lower), append(uppers, p.upper)
		}
	}
	if len(uppers) == 0 {
		return nil
	}
	if _, err := l.conn.Exec(ctx, notePublishedSQL, uppers); err != nil {
		return fmt.Errorf("note published partitions: %w", err)
	}
	rows, err := l.conn.Query(ctx, expiredSQL, l.cfg.Retention.Microseconds(), lowers, uppers, maxChanges)
	if err != nil {
		return fmt.Errorf("find expired partitions: %w", err)
	}
	expired, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("find expired partitions: %w", err)
	}
	for _, upper := range expired {
		p, ok := byUpper[upper]
		if !ok {
			continue
		}
		err := l.dropPartition(ctx, p)
		if isBusy(err) { // the others would wait as long each, for the same lock
			l.metrics.neglected.Inc()
			l.log.Warn("partition not dropped, the outbox is in use", "from", p.lower)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const dropPartitionSQL = `select public.outbox_drop_partition($1)`

// dropPartition waits for writers only briefly: dropping locks the whole outbox, and who wants to write meanwhile waits
// behind it. Somebody who is busy for long only puts it off.
func (l *leader) dropPartition(ctx context.Context, p partition) error {
	fault.Here("relay.partition.before_drop")
	err := l.term.within(ctx, l.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, dropPartitionSQL, p.name)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop partition from %d: %w", p.lower, err)
	}
	l.log.Info("partition dropped", "from", p.lower, "to", p.upper)
	return nil
}
