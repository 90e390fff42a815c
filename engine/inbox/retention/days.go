package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/fault"
)

// partition is a range of event times: from lower to upper, upper not included.
type partition struct {
	name         string
	lower, upper time.Time
}

const (
	maxDrops  = 8      // partitions per round
	maxMoves  = 10_000 // rows that go along when a day gets its partition; a day with more stays where it is
	maxChunks = 20     // deletes per round
	chunkRows = 5_000
)

const listDays = `
select p.relname, (bound[1])::timestamptz, (bound[2])::timestamptz
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') as bound
where i.inhparent = 'public.inbox'::regclass and bound is not null
order by 2`

// days are the partitions with two bounds: the days, and the past before the first of them.
func (j *Janitor) days(ctx context.Context) ([]partition, error) {
	rows, _ := j.cfg.Pool.Query(ctx, listDays)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p partition, err error) {
		return p, row.Scan(&p.name, &p.lower, &p.upper)
	})
	if err != nil {
		return nil, fmt.Errorf("list inbox partitions: %w", err)
	}
	return list, nil
}

const readToday = `select date_trunc('day', clock_timestamp() at time zone 'UTC') at time zone 'UTC'`

// createAhead gives today and the days after it their partitions.
func (r *leasedRound) createAhead(ctx context.Context) error {
	var today time.Time
	if err := r.cfg.Pool.QueryRow(ctx, readToday).Scan(&today); err != nil {
		return fmt.Errorf("read database clock: %w", err)
	}
	days, err := r.days(ctx)
	if err != nil {
		return err
	}
	have := make(map[int64]bool, len(days))
	for _, p := range days {
		have[p.lower.Unix()] = true
	}
	for n := range r.cfg.DaysAhead + 1 {
		day := today.UTC().AddDate(0, 0, n)
		if have[day.Unix()] {
			continue
		}
		if err := r.createDay(ctx, day); err != nil {
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
		r.log.WarnContext(ctx, "inbox partition not created, the inbox is in use", "day", from)
		return nil
	case err != nil:
		return fmt.Errorf("create inbox partition of %s: %w", from, err)
	case !created:
		r.log.WarnContext(ctx, "inbox partition not created, its events stay in inbox_future", "day", from)
		return nil
	}
	r.round.Created++
	r.log.InfoContext(ctx, "inbox partition created", "day", from)
	return nil
}

// busy reports that another transaction held a lock for too long; the next round tries again.
func busy(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03" // lock_not_available
}
