package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A benchmark that counted undone work would flatter the variant that did least. So after every run the tables must
// hold exactly what the events of the run call for: each effect once, in the order of its key, each id remembered,
// each key at its newest version, and no dead letter.
const (
	checkEffects = `
select count(*), count(distinct event_id), coalesce(sum(number), 0)::bigint,
    count(*) filter (where number <= before), count(*) filter (where event_id < $2 or event_id >= $3)
from (select event_id collate "C", number, lag(number) over (partition by number % $1 order by position) as before
    from public.effect) as e`
	checkIDs = `
select count(*) from %s
where consumer = $1 and event_id collate "C" >= $2 and event_id collate "C" < $3`
	checkKeys = `
select count(*), coalesce(sum(version), 0)::bigint from public.inbox_key
where consumer = $1 and key like 'member-%'`
	checkLeft = `
select (select count(*) from public.dead_letter) + (select count(*) from public.inbox_owner)
    + (select count(*) from public.inbox_attempt)`
)

// check compares the tables with the records.
func (r *records) check(ctx context.Context, pool *pgxpool.Pool, v inboxVariant) error {
	from, to := idAt(r.base, 0), idAt(r.until(), 0)
	var problems []error
	same := func(what string, got, want int64) {
		if got != want {
			problems = append(problems, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	var effects, different, sum, inversions, foreign, ids, left int64
	err := pool.QueryRow(ctx, checkEffects, r.keys, from, to).Scan(&effects, &different, &sum, &inversions, &foreign)
	if err != nil {
		return fmt.Errorf("read effects: %w", err)
	}
	if err := pool.QueryRow(ctx, fmt.Sprintf(checkIDs, v.table), inboxConsumer, from, to).Scan(&ids); err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	if err := pool.QueryRow(ctx, checkLeft).Scan(&left); err != nil {
		return fmt.Errorf("read what is left: %w", err)
	}
	same("effects", effects, int64(r.events))
	same("events with an effect", different, int64(r.events))
	same("sum of the events' numbers", sum, r.sum())
	same("effects out of order", inversions, 0)
	same("effects of other events", foreign, 0)
	same("ids remembered", ids, int64(r.events))
	same("dead letters, owners and attempts left", left, 0)
	if v.checked {
		var keys, versions int64
		if err := pool.QueryRow(ctx, checkKeys, inboxConsumer).Scan(&keys, &versions); err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		same("keys with a version", keys, int64(min(r.keys, len(r.numbers))))
		same("sum of the versions", versions, int64(r.events)) // versions count from 1: the newest ones add up to all
	}
	return errors.Join(problems...)
}

func (r *records) sum() (sum int64) {
	for i, n := range r.numbers {
		if n == i {
			sum += int64(n)
		}
	}
	return sum
}
