package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const purgeRows = `
with old as (
    select event_id from lease
    where handler = $1 and state = 'done' and ended_at < clock_timestamp() - make_interval(secs => $2)
    order by ended_at limit $3 for update skip locked
)
delete from lease where handler = $1 and event_id = any (array(select event_id from old))
returning event_id`

const purgePage = 1000

// Purge removes what has been done for longer than the retention, a thousand rows per transaction, and returns how
// many. also, if set, removes in the same transaction what belongs to the events. What failed or is uncertain stays: it
// is a person's to decide. It is safe beside other processes' purges, and does nothing without a retention.
func (l *Leases) Purge(ctx context.Context, also func(ctx context.Context, tx pgx.Tx, eventIDs []string) error) (
	purged int, err error,
) {
	for n := purgePage; n == purgePage && l.settings.Retention > 0; {
		err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, purgeRows, l.handler, l.settings.Retention.Seconds(), purgePage)
			gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if n = len(gone); err != nil || n == 0 || also == nil {
				return err
			}
			return also(ctx, tx, gone)
		})
		if err != nil {
			return purged, fmt.Errorf("purge leases: %w", err)
		}
		purged += n
		l.metrics.purged.Add(float64(n))
	}
	return purged, nil
}

// purgesEvery is the longest pause between two purges of a runner.
const purgesEvery = time.Hour

// purge removes old rows until ctx ends, first when the runner starts.
func (r *Runner) purge(ctx context.Context) {
	retention := r.leases.settings.Retention
	if retention <= 0 {
		return
	}
	tick := time.NewTicker(min(purgesEvery, retention))
	defer tick.Stop()
	for {
		purged, err := r.leases.Purge(ctx, r.effect.Purged)
		r.reportUnreachable(ctx, err)
		if purged > 0 {
			r.log.InfoContext(ctx, "old effects purged", "rows", purged)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
