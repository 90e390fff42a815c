package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const day = 24 * time.Hour

const listDays = `(
    select p.relname::text as name, (bound[1])::timestamptz as lower, (bound[2])::timestamptz as upper
    from pg_inherits i
    join pg_class p on p.oid = i.inhrelid
    cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
        'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') as bound
    where i.inhparent = 'public.inbox'::regclass and bound is not null) d`

const selectMissing = `
select distinct day
from (select date_trunc('day', clock at time zone 'UTC') as today from unnest($1::timestamptz[]) clock) c
cross join generate_series(0, 7) n
cross join lateral (select (today + n * interval '1 day') at time zone 'UTC' as day) as missing
where day >= (select remembers_from from public.inbox_horizon)
    and not exists (select from ` + listDays + ` where d.lower <= day and day < d.upper)
order by day`

// A day with more than this many rows in inbox_future stays there.
const createDay = `select public.inbox_create_day($1, 10000)`

func (j *Janitor) createDays(ctx context.Context, now clocks, round *Round) error {
	rows, _ := j.cfg.Pool.Query(ctx, selectMissing, now)
	missing, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("list missing inbox partitions: %w", err)
	}
	for _, from := range missing {
		var created bool
		date := from.UTC().Format(time.DateOnly)
		done, err := j.change(ctx, "create the inbox partition of "+date, &created, createDay, from)
		switch {
		case err != nil:
			return err
		case created:
			round.Created++
			j.cfg.Log.InfoContext(ctx, "inbox partition created", "day", date)
		case done:
			j.cfg.Log.WarnContext(ctx, "inbox partition not created, its events stay in inbox_future", "day", date)
		}
	}
	return nil
}

// The days with events are counted back from the newest. An id without a time counts for the day of its processing.
const moveHorizon = `
update public.inbox_horizon
set remembers_from = greatest(remembers_from, least($1, coalesce((
    select d.lower from ` + listDays + `
    where exists (select from public.inbox i where i.event_time >= d.lower and i.event_time < d.upper)
        or exists (select from public.inbox_foreign f where f.processed_at >= d.lower and f.processed_at < d.upper)
    order by d.lower desc offset $2 limit 1), remembers_from)))
returning remembers_from`

// The new horizon commits before a day is dropped: an event that passes the old one finds its partition.
func (j *Janitor) forget(ctx context.Context, now clocks, round *Round) error {
	if mayForget, err := j.mayForget(ctx); err != nil || !mayForget {
		round.Refused = true
		return err
	}
	forgotten := slices.MinFunc(now, time.Time.Compare).Add(-j.cfg.Retention).UTC().Truncate(day)
	newerDays := (j.cfg.Retention + day - 1) / day
	var horizon time.Time
	moved, err := j.change(ctx, "move the inbox horizon", &horizon, moveHorizon, forgotten, int64(newerDays))
	if err != nil || !moved {
		return err
	}
	return errors.Join(j.dropDays(ctx, horizon, forgotten, round), j.deleteRows(ctx, horizon, round))
}

func (j *Janitor) mayForget(ctx context.Context) (bool, error) {
	err := j.cfg.Check(ctx)
	if err == nil {
		j.refused.Set(0)
		return true, nil
	}
	j.refused.Set(1)
	if _, is := errors.AsType[*Violation](err); is {
		j.cfg.Log.ErrorContext(ctx, "inbox forgets nothing", "reason", err)
		return false, nil
	}
	return false, fmt.Errorf("check how far back events may come again: %w", err)
}

const selectDroppable = `
select d.name from ` + listDays + `
where d.upper <= $1 or d.upper <= $2
    and not exists (select from public.inbox i where i.event_time >= d.lower and i.event_time < d.upper)
order by d.upper limit 8`

const dropDay = `select public.inbox_drop_day($1)`

// dropDays drops the days before the horizon, and empty ones that both clocks call forgotten.
func (j *Janitor) dropDays(ctx context.Context, horizon, forgotten time.Time, round *Round) error {
	rows, _ := j.cfg.Pool.Query(ctx, selectDroppable, horizon, forgotten)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list old inbox partitions: %w", err)
	}
	for _, name := range names {
		dropped, err := j.change(ctx, "drop "+name, nil, dropDay, name)
		if err != nil || !dropped {
			return err
		}
		round.Dropped++
		j.cfg.Log.InfoContext(ctx, "inbox partition dropped", "partition", name)
	}
	return nil
}

// chunk is the limit of the next two statements: a longer one would hold up vacuum.
const chunk = 100_000

// The database's clock wrote processed_at, the process's clock processing_time: as text, so that no row fails the
// comparison.
const deleteForeign = `
delete from public.inbox_foreign where ctid = any (array(
    select i.ctid from public.inbox_foreign i
    where i.processed_at < $1
        and coalesce(i.metadata->>'processing_time', '') collate "C" < to_char($1 at time zone 'UTC', 'YYYY-MM-DD')
    limit 100000))`

const deleteMisplaced = `
delete from public.inbox_future where ctid = any (array(
    select ctid from public.inbox_future where event_time < $1 limit 100000))`

const deleteAttempts = `delete from public.inbox_attempt where last_at < $1`

func (j *Janitor) deleteRows(ctx context.Context, horizon time.Time, round *Round) error {
	for _, sql := range []string{deleteForeign, deleteMisplaced, deleteAttempts} {
		for n := int64(chunk); n >= chunk; {
			tag, err := j.cfg.Pool.Exec(ctx, sql, horizon)
			if err != nil {
				return fmt.Errorf("forget inbox rows: %w", err)
			}
			n = tag.RowsAffected()
			round.Forgotten += int(n)
		}
	}
	return nil
}
