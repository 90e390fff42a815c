package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/fault"
)

// partition is a range of event times: from lower to upper, upper not included.
type partition struct {
	Name         string
	Lower, Upper time.Time
}

const (
	maxDrops  = 8      // partitions per round
	maxMoves  = 10_000 // rows that go along when a day gets its partition; a day with more stays where it is
	maxChunks = 20     // deletes per round
	chunkRows = 5_000
)

// listDays are the partitions with two bounds: the days, and the past before the first of them.
const listDays = `
select p.relname, (bound[1])::timestamptz as lower, (bound[2])::timestamptz as upper
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') as bound
where i.inhparent = 'public.inbox'::regclass and bound is not null
order by 2`

// daysAhead is for how many days after today there are partitions.
const daysAhead = 7

const listMissing = `
select day
from (select date_trunc('day', clock_timestamp() at time zone 'UTC') as today) now
cross join generate_series(0, $1::int) as n
cross join lateral (select (today + n * interval '1 day') at time zone 'UTC' as day) as d
where day not in (select lower from (` + listDays + `) as there)
order by day`

// createAhead gives today and the days after it their partitions.
func (r *leasedRound) createAhead(ctx context.Context) error {
	rows, _ := r.cfg.Pool.Query(ctx, listMissing, daysAhead)
	missing, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("list missing inbox partitions: %w", err)
	}
	for _, day := range missing {
		if err := r.createDay(ctx, day.UTC()); err != nil {
			return err
		}
	}
	return nil
}

const createDaySQL = `select public.inbox_create_day($1, $2)`

// createDay locks inbox_future alone. The rows of that day, from clocks that were ahead, lie there and go along. The
// function does what this session has no right to.
func (r *leasedRound) createDay(ctx context.Context, day time.Time) error {
	fault.Here("janitor.create.before")
	from, created := day.Format(time.RFC3339), false
	err := r.change(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, createDaySQL, day, maxMoves).Scan(&created)
		fault.Here("janitor.create.in_tx")
		return err
	})
	switch {
	case busy(err):
		r.cfg.Log.WarnContext(ctx, "inbox partition not created, the inbox is in use", "day", from)
		return nil
	case err != nil:
		return fmt.Errorf("create inbox partition of %s: %w", from, err)
	case !created:
		r.cfg.Log.WarnContext(ctx, "inbox partition not created, its events stay in inbox_future", "day", from)
		return nil
	}
	r.round.Created++
	r.cfg.Log.InfoContext(ctx, "inbox partition created", "day", from)
	return nil
}

// busy reports that another transaction held a lock for too long; the next round tries again.
func busy(err error) bool {
	pgErr, is := errors.AsType[*pgconn.PgError](err)
	return is && pgErr.Code == "55P03" // lock_not_available
}

// The horizon moves to the beginning of a day and never back. It is committed before anything is dropped: an event that
// is recorded after that and passes the horizon has its partition still. It passes waiting dead letters too, which
// remember by themselves whether their event was applied: one that no operator looks at must not stop all forgetting.
const moveHorizon = `
update public.inbox_horizon
set remembers_from = greatest(remembers_from,
    date_trunc('day', (clock_timestamp() - $1 * interval '1 microsecond') at time zone 'UTC') at time zone 'UTC')
returning remembers_from`

// forget moves the horizon and drops what lies wholly before it.
func (r *leasedRound) forget(ctx context.Context) error {
	if allowed, err := r.mayForget(ctx); err != nil || !allowed {
		r.round.Refused = true
		return err
	}
	fault.Here("janitor.horizon.before")
	var horizon time.Time
	err := r.change(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, moveHorizon, r.cfg.Retention.Microseconds()).Scan(&horizon)
	})
	if err != nil {
		return fmt.Errorf("move inbox horizon: %w", err)
	}
	fault.Here("janitor.horizon.after")
	if err := r.dropDays(ctx, horizon); err != nil {
		return err
	}
	return r.deleteRows(ctx, horizon)
}

// mayForget is the horizon guard.
func (r *leasedRound) mayForget(ctx context.Context) (bool, error) {
	if r.cfg.Redelivery == nil {
		return true, nil
	}
	reach, err := r.cfg.Redelivery(ctx)
	if err != nil {
		return false, fmt.Errorf("ask how far back events may come again: %w", err)
	}
	if r.cfg.Retention > reach {
		return true, nil
	}
	r.cfg.Log.ErrorContext(ctx, "inbox forgets nothing: events may come again for longer than it is to remember them",
		"retention", r.cfg.Retention, "redelivery", describeReach(reach))
	return false, nil
}

func describeReach(reach time.Duration) string {
	if reach == forever {
		return "without limit"
	}
	return reach.String()
}

const dropDaySQL = `select public.inbox_drop_day($1)`

// dropDays drops partitions, oldest first. Dropping waits for the transactions that write to the inbox and keeps new
// ones out meanwhile; where that takes too long it is put off.
func (r *leasedRound) dropDays(ctx context.Context, horizon time.Time) error {
	rows, _ := r.cfg.Pool.Query(ctx, listDays)
	days, err := pgx.CollectRows(rows, pgx.RowToStructByPos[partition])
	if err != nil {
		return fmt.Errorf("list inbox partitions: %w", err)
	}
	for _, p := range days {
		if p.Upper.After(horizon) || r.round.Dropped == maxDrops {
			return nil
		}
		fault.Here("janitor.drop.before")
		err := r.change(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, dropDaySQL, p.Name)
			return err
		})
		if busy(err) {
			r.cfg.Log.WarnContext(ctx, "inbox partition not dropped, the inbox is in use", "from", p.Lower)
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop inbox partition from %s: %w", p.Lower.Format(time.DateOnly), err)
		}
		fault.Here("janitor.drop.after")
		r.round.Dropped++
		r.cfg.Log.InfoContext(ctx, "inbox partition dropped", "from", p.Lower, "to", p.Upper)
	}
	return nil
}

// A foreign id has no time of its own; it was processed after its record was written, so what was processed before the
// horizon is from before it. An id that waits for a replay stays: no horizon would keep a redelivery out.
const deleteForeign = `
delete from public.inbox_foreign where ctid in (
    select i.ctid from public.inbox_foreign i
    where i.processed_at < $1 and not exists (select from public.dead_letter d
        where d.state = 'waiting' and d.consumer = i.consumer and d.event_id = i.event_id)
    limit $2)`

const deleteMisplaced = `
delete from public.inbox_future where ctid in (select ctid from public.inbox_future where event_time < $1 limit $2)`

const deleteAttempts = `
delete from public.inbox_attempt where ctid in (select ctid from public.inbox_attempt where last_at < $1 limit $2)`

// deleteRows forgets what no dropped partition takes along.
func (r *leasedRound) deleteRows(ctx context.Context, horizon time.Time) error {
	for _, sql := range []string{deleteForeign, deleteMisplaced, deleteAttempts} {
		for range maxChunks {
			tag, err := r.cfg.Pool.Exec(ctx, sql, horizon, chunkRows)
			if err != nil {
				return fmt.Errorf("forget inbox rows: %w", err)
			}
			r.round.Forgotten += int(tag.RowsAffected())
			if tag.RowsAffected() < chunkRows {
				break
			}
		}
	}
	return nil
}
