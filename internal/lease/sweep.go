package lease

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// The array makes the update use the primary key, however many rows the planner expects.
const sweepRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state in ('claimed', 'submitting') and due_at <= (select clock_timestamp())
    order by due_at limit $2 for update skip locked
)
update lease
set token = null, due_at = clock_timestamp(), doubts = doubts + (state = 'submitting')::int,
    state = case when attempts < $4 and (state = 'claimed' or $3) then 'pending'
        when state = 'claimed' then 'failed' else 'uncertain' end,
    ended_at = case when attempts >= $4 or state = 'submitting' and not $3 then clock_timestamp() end,
    error = case when state = 'submitting' then 'its claimant vanished after it had begun'
        when attempts < $4 then 'its claimant vanished before it had begun'
        else format('given up after %s attempts: its claimant vanished before it had begun', attempts) end
where handler = $1 and event_id = any (array(select event_id from ended))
returning event_id, state, error`

// page bounds a sweep, and a transaction of a purge.
const page = 1000

// Sweep ends up to 1,000 leases of workers that vanished, as the package doc has it.
func (r *Runner) Sweep(ctx context.Context) error {
	s := r.cfg.Settings
	rows, _ := r.cfg.Pool.Query(ctx, sweepRows, r.cfg.Handler, page, s.OnUncertain == Resend, s.MaxAttempts)
	var id, reason string
	var state State
	_, err := pgx.ForEachRow(rows, []any{&id, &state, &reason}, func() error {
		level := slog.LevelError
		if state == Pending {
			level = slog.LevelWarn
		}
		r.Wake()
		r.metrics.takeovers.Inc()
		r.metrics.attempts.WithLabelValues("vanished").Inc()
		r.cfg.Log.Log(ctx, level, "claimant of an effect vanished", "event_id", id, "state", state, "error", reason)
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep leases: %w", err)
	}
	return nil
}

const purgeRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state in ('done', 'skipped')
        and ended_at < (select clock_timestamp()) - make_interval(secs => $2)
    order by ended_at limit $3 for update skip locked
)
delete from lease where handler = $1 and event_id = any (array(select event_id from ended))
returning event_id`

// Purge removes the rows done or skipped for longer than the retention, 1,000 per transaction. Several processes may
// purge at the same time.
func (r *Runner) Purge(ctx context.Context) (err error) {
	for n := page; n == page && r.cfg.Settings.Retention > 0; {
		if n, err = r.purgePage(ctx); err != nil {
			return fmt.Errorf("purge leases: %w", err)
		}
		r.metrics.purged.Add(float64(n))
	}
	return nil
}

func (r *Runner) purgePage(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, purgeRows, r.cfg.Handler, r.cfg.Settings.Retention.Seconds(), page)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if n = len(ids); err != nil || n == 0 || r.cfg.Effect.Purged == nil {
			return err
		}
		return r.cfg.Effect.Purged(ctx, tx, ids)
	})
	return n, err
}
