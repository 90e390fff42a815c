package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/inbox/retention"
)

const day = 24 * time.Hour

// historyLoad fills an inbox as time would have: a partition per day and as many rows in each, today's included, and
// the versions of keys that came once. The rows are made by the server, two days at a time, and indexed afterwards.
func (b *inboxBench) historyLoad() []step {
	steps := []step{{name: "history: make the days", weight: 1, run: b.makeHistory}}
	seconds := float64(b.plan.History) / 250_000
	for first := 0; first < b.plan.Days; first += 2 {
		steps = append(steps, step{
			name:   fmt.Sprintf("history: %d of %d", b.plan.History/b.plan.Days*first, b.plan.History),
			weight: seconds / float64(b.plan.Days) * 2,
			run: func(ctx context.Context) error {
				group, ctx := errgroup.WithContext(ctx)
				for ago := first; ago < min(first+2, b.plan.Days); ago++ {
					group.Go(func() error { return b.loadDay(ctx, ago) })
				}
				return group.Wait()
			},
		})
	}
	return append(steps, step{name: "history: vacuum", weight: 5, run: b.endHistory})
}

const (
	loadKeysSQL = `
insert into public.inbox_key (consumer, key, version)
select $1, 'past-' || lpad(n::text, 9, '0'), 1 from generate_series(1, $2) as n`
	forgetPartitionSQL = `drop table public.%s`
)

// makeHistory takes away the partitions that a new inbox has for the past and for today.
func (b *inboxBench) makeHistory(ctx context.Context) (err error) {
	if b.without, err = b.stage.copyOf(ctx, inboxTemplate); err != nil {
		return err
	}
	if b.history, err = b.stage.copyOf(ctx, inboxTemplate); err != nil {
		return err
	}
	today := b.today()
	for _, name := range []string{"inbox_past", dayName(today)} {
		if _, err := b.history.Exec(ctx, fmt.Sprintf(forgetPartitionSQL, name)); err != nil {
			return fmt.Errorf("drop partition: %w", err)
		}
	}
	if _, err := b.history.Exec(ctx, loadKeysSQL, inboxConsumer, b.plan.PastKeys); err != nil {
		return fmt.Errorf("load keys: %w", err)
	}
	return nil
}

// today is the day of the benchmark's begin: one that runs over midnight goes on in the partition of tomorrow.
func (b *inboxBench) today() time.Time { return b.began.Truncate(day) }

func dayName(d time.Time) string { return "inbox_" + d.Format("20060102") }

// A day is made as a table by itself, without its index, and becomes a partition when it is full. Its ids are spread
// over the day; those of today end before the first run's begin.
const (
	makeDaySQL = `create table public.%s (like public.inbox including defaults)`
	loadDaySQL = `
insert into public.%s (consumer, event_id, event_time, event_type, payload_hash, metadata, processed_at)
select $1, substr(h.hex, 1, 8) || '-' || substr(h.hex, 9, 4) || '-7fff-8000-' || lpad(to_hex(n), 12, '0'), t.at, $2,
    sha256(int8send(n)), '{"group": "bench-inbox", "topic": "bench-inbox", "offset": 1234567, "partition": 7}', t.at
from generate_series(1, $5::bigint) as n
cross join lateral (select $3::timestamptz + floor(n * $4::float8) * interval '1 millisecond') as t (at)
cross join lateral (select lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0')) as h (hex)`
	indexDaySQL  = `alter table public.%s add primary key (consumer, event_id, event_time)`
	attachDaySQL = `alter table public.inbox attach partition public.%s for values from ('%s') to ('%s')`
)

// loadDay makes the day so many days ago.
func (b *inboxBench) loadDay(ctx context.Context, ago int) error {
	from := b.today().Add(-time.Duration(ago) * day)
	length := day
	if ago == 0 {
		length = max(b.began.Sub(from)-time.Second, time.Millisecond)
	}
	rows, name := b.plan.History/b.plan.Days, dayName(from)
	conn, err := b.history.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "set maintenance_work_mem = '256MB'"); err != nil {
		return fmt.Errorf("set memory: %w", err)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(makeDaySQL, name)); err != nil {
		return fmt.Errorf("create day: %w", err)
	}
	apart := float64(length.Milliseconds()-1) / float64(rows)
	_, err = conn.Exec(ctx, fmt.Sprintf(loadDaySQL, name), inboxConsumer, eventType, from, apart, rows)
	if err != nil {
		return fmt.Errorf("fill day: %w", err)
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(indexDaySQL, name)); err != nil {
		return fmt.Errorf("index day: %w", err)
	}
	b.attaching.Lock() // it locks the inbox
	defer b.attaching.Unlock()
	_, err = conn.Exec(ctx, fmt.Sprintf(attachDaySQL, name, from.Format(time.RFC3339), from.Add(day).Format(time.RFC3339)))
	if err != nil {
		return fmt.Errorf("attach day: %w", err)
	}
	return nil
}

// endHistory does at once what autovacuum would otherwise do during the measurement, and counts.
func (b *inboxBench) endHistory(ctx context.Context) error {
	if _, err := b.history.Exec(ctx, "vacuum analyze"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	var rows int
	if err := b.history.QueryRow(ctx, "select count(*) from public.inbox").Scan(&rows); err != nil {
		return fmt.Errorf("count history: %w", err)
	}
	if want := b.plan.History / b.plan.Days * b.plan.Days; rows != want {
		return fmt.Errorf("the history has %d rows, want %d", rows, want)
	}
	return nil
}

// historySteps consume the same backlog into an inbox without a history and into the one with it, as the services'
// consumers do.
func (b *inboxBench) historySteps(int) []step { return b.behindSteps("history.plain", "history.full") }

// droppedSteps do it again when a day of the history has been dropped.
func (b *inboxBench) droppedSteps(int) []step {
	return b.behindSteps("history.plain.again", "history.dropped")
}

func (b *inboxBench) behindSteps(plain, behind string) []step {
	into := func(db **database, name, figure string) step { // the databases are made by a step
		r := inboxRun{
			variant: inboxVariantOf("batch200_versioned"), partitions: inboxPartitions, duplicates: 1, figure: figure,
		}
		return step{name: name, weight: 4, run: func(ctx context.Context) error { return b.onKept(ctx, *db, r) }}
	}
	return []step{
		into(&b.without, "no history", plain),
		into(&b.history, fmt.Sprintf("behind %d rows", b.plan.History), behind),
	}
}

// onKept runs on a database that stays. The ids of each run stay in it; effects and keys are the next run's own.
func (b *inboxBench) onKept(ctx context.Context, db *database, r inboxRun) error {
	for _, sql := range []string{
		"truncate public.effect", "delete from public.inbox_key where key like 'member-%'",
		"vacuum public.inbox_key",
	} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("clear: %w", err)
		}
	}
	return b.run(ctx, db, r)
}

var errNothingDropped = errors.New("the janitor dropped no day")

// dropDay has the janitor forget the oldest day.
func (b *inboxBench) dropDay(ctx context.Context) error {
	oldest := b.today().Add(-time.Duration(b.plan.Days-1) * day)
	janitor, err := retention.New(retention.Config{
		Pool: b.history.Pool, Retention: time.Duration(b.plan.Days-2) * day,
		Now: func() time.Time { return b.began }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	round, err := janitor.Tidy(ctx)
	if err == nil && round.Dropped != 1 {
		err = errNothingDropped
	}
	if err != nil {
		return err
	}
	var there bool
	err = b.history.QueryRow(ctx, "select to_regclass($1) is not null", "public."+dayName(oldest)).Scan(&there)
	if err == nil && there {
		err = errNothingDropped
	}
	return err
}
