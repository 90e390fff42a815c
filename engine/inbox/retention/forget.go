package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
)

// forget moves the horizon and drops what lies wholly before it.
func (r *leasedRound) forget(ctx context.Context) error {
	if allowed, err := r.mayForget(ctx); err != nil || !allowed {
		r.round.Refused = true
		return err
	}
	horizon, err := r.moveHorizon(ctx)
	if err != nil {
		return err
	}
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
	r.log.ErrorContext(ctx, "inbox forgets nothing: events may come again for longer than it is to remember them",
		"retention", r.cfg.Retention, "redelivery", reach)
	return false, nil
}

// The horizon moves to the beginning of a day and never back. It is committed before anything is dropped: an event that
// is recorded after that and passes the horizon has its partition still. It passes waiting dead letters too, which
// remember by themselves whether their event was applied: one that no operator looks at must not stop all forgetting.
const moveHorizon = `
update public.inbox_horizon
set remembers_from = greatest(remembers_from,
    date_trunc('day', (clock_timestamp() - $1 * interval '1 microsecond') at time zone 'UTC') at time zone 'UTC')
returning remembers_from`

func (r *leasedRound) moveHorizon(ctx context.Context) (horizon time.Time, err error) {
	fault.Here("janitor.horizon.before")
	err = r.change(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, moveHorizon, r.cfg.Retention.Microseconds()).Scan(&horizon)
	})
	if err != nil {
		return horizon, fmt.Errorf("move inbox horizon: %w", err)
	}
	fault.Here("janitor.horizon.after")
	return horizon, nil
}

const dropDaySQL = `select public.inbox_drop_day($1)`

// dropDays drops partitions, oldest first. Dropping waits for the transactions that write to the inbox and keeps new
// ones out meanwhile; where that takes too long it is put off.
func (r *leasedRound) dropDays(ctx context.Context, horizon time.Time) error {
	days, err := r.days(ctx)
	if err != nil {
		return err
	}
	for _, p := range days {
		if p.upper.After(horizon) || r.round.Dropped == maxDrops {
			return nil
		}
		fault.Here("janitor.drop.before")
		err := r.change(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, dropDaySQL, p.name)
			return err
		})
		if busy(err) {
			r.log.WarnContext(ctx, "inbox partition not dropped, the inbox is in use", "from", p.lower)
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop inbox partition from %s: %w", p.lower.Format(time.DateOnly), err)
		}
		fault.Here("janitor.drop.after")
		r.round.Dropped++
		r.log.InfoContext(ctx, "inbox partition dropped", "from", p.lower, "to", p.upper)
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
