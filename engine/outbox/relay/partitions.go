package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox/window"
)

// tablePartitions keeps room ahead of the writers, and nothing for longer than it is to be kept.
type tablePartitions struct {
	cfg          Config
	log          *slog.Logger
	metrics      *metrics
	session      *session
	window       *window.Reader
	maintainedAt time.Time
}

// partition is a range of positions: from Lower to Upper, Upper not included.
type partition struct {
	Name         string
	Lower, Upper int64
}

// maxChanges bounds how many partitions are created at a time, and how many dropped: the relay has events to publish.
const maxChanges = 8

func (t *tablePartitions) isDue() bool { return time.Since(t.maintainedAt) >= t.cfg.MaintainEvery }

// maintain creates partitions ahead of the writers, drops what is published and old enough, and forgets old ids.
func (t *tablePartitions) maintain(ctx context.Context) error {
	t.maintainedAt = time.Now()
	return t.session.do(ctx, func(ctx context.Context) error {
		firstUpper, err := t.createAhead(ctx)
		if err != nil {
			return err
		}
		// A relay that begins to lead publishes nothing before this: it asks no more than it has to.
		if published := t.window.PublishedTo(); firstUpper <= published {
			if err := t.dropPublished(ctx, published); err != nil {
				return err
			}
		}
		return t.forgetIDs(ctx)
	})
}

const partitionsSQL = `
select p.relname, bound[1]::bigint as lower, bound[2]::bigint as upper
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
join pg_namespace n on n.oid = p.relnamespace and n.nspname = 'public'
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') as bound
where i.inhparent = 'public.outbox'::regclass and bound is not null`

const roomSQL = `
select coalesce(min(upper), 9223372036854775807), coalesce(max(upper), 1),
    coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)
from (` + partitionsSQL + `) p`

// createAhead returns where the first of the partitions that it found ends.
func (t *tablePartitions) createAhead(ctx context.Context) (firstUpper int64, err error) {
	var upper, head int64
	if err := t.session.conn.QueryRow(ctx, roomSQL).Scan(&firstUpper, &upper, &head); err != nil {
		return 0, fmt.Errorf("read room in partitions: %w", err)
	}
	room := t.cfg.PartitionSize * int64(t.cfg.PartitionsAhead)
	for n := 0; upper-head <= room && n < maxChanges; n++ {
		if err := t.create(ctx, upper, upper+t.cfg.PartitionSize); err != nil {
			return 0, err
		}
		upper += t.cfg.PartitionSize
	}
	return firstUpper, nil
}

const createPartitionSQL = `select public.outbox_create_partition($1, $2)`

// create does not lock the outbox against its writers. The function does what this session has no right to.
func (t *tablePartitions) create(ctx context.Context, lower, upper int64) error {
	fault.Here("relay.partition.before_create")
	if err := t.change(ctx, `set local lock_timeout = '1s'`, createPartitionSQL, lower, upper); err != nil {
		return fmt.Errorf("create partition from %d: %w", lower, err)
	}
	t.log.Info("partition created", "from", lower, "to", upper)
	return nil
}

const notePublishedSQL = `
insert into public.outbox_partition (upper_bound)
select upper from (` + partitionsSQL + `) p where upper <= $1
on conflict do nothing`

// expiredSQL keeps a partition in which a parked key has rows, and passes over notes of partitions that were taken away
// by hand.
const expiredSQL = `
select p.*
from (` + partitionsSQL + `) p
join public.outbox_partition note on note.upper_bound = p.upper
where p.upper <= $1 and note.published_at < clock_timestamp() - $2 * interval '1 microsecond'
    and not exists (select from public.outbox_held h where h.position >= p.lower and h.position < p.upper)
order by p.upper limit $3`

// dropPublished drops whole partitions, which costs no vacuum. One whose end is not above the window's position is
// wholly published.
func (t *tablePartitions) dropPublished(ctx context.Context, published int64) error {
	if _, err := t.session.conn.Exec(ctx, notePublishedSQL, published); err != nil {
		return fmt.Errorf("note published partitions: %w", err)
	}
	rows, _ := t.session.conn.Query(ctx, expiredSQL, published, t.cfg.Retention.Microseconds(), maxChanges)
	expired, err := pgx.CollectRows(rows, pgx.RowToStructByPos[partition])
	if err != nil {
		return fmt.Errorf("find expired partitions: %w", err)
	}
	for _, p := range expired {
		err := t.drop(ctx, p)
		if isBusy(err) { // the others would wait as long each, for the same lock
			t.metrics.neglected.Inc()
			t.log.Warn("partition not dropped, the outbox is in use", "from", p.Lower)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const dropPartitionSQL = `select public.outbox_drop_partition($1)`

// drop waits for writers only briefly: dropping locks the whole outbox, and other writers wait behind it. A transaction
// that is open for longer only puts it off.
func (t *tablePartitions) drop(ctx context.Context, p partition) error {
	fault.Here("relay.partition.before_drop")
	if err := t.change(ctx, `set local lock_timeout = '200ms'`, dropPartitionSQL, p.Name); err != nil {
		return fmt.Errorf("drop partition from %d: %w", p.Lower, err)
	}
	t.log.Info("partition dropped", "from", p.Lower, "to", p.Upper)
	return nil
}

// change runs a function of the database that waits only so long for a lock.
func (t *tablePartitions) change(ctx context.Context, limitSQL, sql string, args ...any) error {
	return t.session.term.runGuarded(ctx, t.session.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, limitSQL); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// isBusy reports that a lock was held for longer than one may wait for it here: it only has to be tried again.
func isBusy(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03" // lock_not_available
}

const forgetIDsSQL = `
delete from public.outbox_given_id where event_id = any (array(
    select event_id from public.outbox_given_id
    where added_at < statement_timestamp() - $1 * interval '1 microsecond' order by added_at limit $2))`

// maxForgotten bounds how many ids are forgotten at a time.
const maxForgotten = 10_000

// forgetIDs forgets ids that writers gave after [Config.IDRetention].
func (t *tablePartitions) forgetIDs(ctx context.Context) error {
	if _, err := t.session.conn.Exec(ctx, forgetIDsSQL, t.cfg.IDRetention.Microseconds(), maxForgotten); err != nil {
		return fmt.Errorf("forget given ids: %w", err)
	}
	return nil
}
