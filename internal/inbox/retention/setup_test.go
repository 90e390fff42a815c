package retention_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const day = 24 * time.Hour

// bundle is an inbox with a janitor and two movable clocks.
type bundle struct {
	*inboxtest.Bundle
	today   time.Time
	noon    time.Duration // to noon: no test runs into the next day
	process time.Duration // clock error
}

var noon = time.Until(time.Now().UTC().Truncate(day).Add(day / 2))

// movableClock replaces the server's clock for the objects of the later sets.
func movableClock(ahead time.Duration) migrations.Set {
	return migrations.Set{Name: "clock", FS: fstest.MapFS{"0001_clock.sql": {Data: fmt.Appendf(nil, `-- +goose Up
create table public.ledger (n bigint generated always as identity, event_id text);
create schema movable;
create table movable.clock (ahead interval not null);
insert into movable.clock values (interval '%d ms');
create function movable.clock_timestamp() returns timestamptz language sql as
    $$ select pg_catalog.clock_timestamp() + (select ahead from movable.clock) $$;
set search_path = public, movable, pg_catalog;
`, (noon + ahead).Milliseconds())}}}
}

const readMovableClock = `
do $$ begin
    execute format('alter database %I set search_path = public, movable, pg_catalog', current_database());
end $$`

func setup(t *testing.T) *bundle { return install(t, 0) }

// install makes an inbox on a database whose clock is wrong by ahead.
func install(t *testing.T, ahead time.Duration) *bundle {
	t.Helper()
	pool := pgtest.New(t, movableClock(ahead), migrations.Inbox, migrations.Audit)
	b := &bundle{Bundle: inboxtest.On(pool), today: time.Now().UTC().Truncate(day)}
	b.noon = time.Until(b.today.Add(day / 2))
	b.Exec(t, readMovableClock)
	pool.Reset() // sessions from before have the server's clock
	b.moveDatabase(t, ahead)
	return b
}

func (b *bundle) moveDatabase(t *testing.T, ahead time.Duration) {
	t.Helper()
	b.Exec(t, fmt.Sprintf(`update movable.clock set ahead = interval '%d ms'`, (b.noon+ahead).Milliseconds()))
}

func (b *bundle) nextDay(t *testing.T) {
	t.Helper()
	b.today, b.noon = b.today.AddDate(0, 0, 1), b.noon+day
	b.moveDatabase(t, 0)
}

func (b *bundle) janitor(t *testing.T, kept time.Duration, change ...func(*retention.Config)) *retention.Janitor {
	t.Helper()
	cfg := retention.Config{
		Pool: b.Pool, Retention: kept, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(b.noon + b.process) },
	}
	for _, f := range change {
		f(&cfg)
	}
	j, err := retention.New(cfg)
	require.NoError(t, err)
	return j
}

func (b *bundle) tidy(t *testing.T, j *retention.Janitor) retention.Round {
	t.Helper()
	round, err := j.Tidy(t.Context())
	require.NoError(t, err)
	return round
}

func (b *bundle) split(t *testing.T, days int) {
	t.Helper()
	b.tidy(t, b.janitor(t, 3000*day))
	b.Exec(t, `drop table inbox_past`)
	for n := 1; n <= days; n++ {
		from := b.today.AddDate(0, 0, -n)
		b.Exec(t, fmt.Sprintf(`create table %s partition of inbox for values from ('%s') to ('%s')`,
			"inbox_"+from.Format("20060102"), from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
	b.fill(t, -days, 0)
}

func (b *bundle) fill(t *testing.T, first, last int) (ids []string) {
	t.Helper()
	in := b.Inbox(t)
	for n := first; n <= last; n++ {
		id := inboxtest.IDAt(b.today.AddDate(0, 0, n).Add(time.Hour))
		outcome, err := in.Process(t.Context(), id, b.Note(id))
		require.NoError(t, err)
		require.Equal(t, "applied", string(outcome))
		ids = append(ids, id)
	}
	return ids
}

func (b *bundle) outcomes(t *testing.T, ids ...string) (outcomes []string) {
	t.Helper()
	in := b.Inbox(t)
	for _, id := range ids {
		outcome, _ := in.Process(context.WithoutCancel(t.Context()), id, b.Note(id))
		outcomes = append(outcomes, string(outcome))
	}
	return outcomes
}

func (b *bundle) partitions(t *testing.T) int {
	t.Helper()
	return b.Count(t, `select count(*) from pg_inherits where inhparent = 'inbox'::regclass`)
}

// horizon is counted in days from today.
func (b *bundle) horizon(t *testing.T) int {
	t.Helper()
	var horizon time.Time
	require.NoError(t, b.Pool.QueryRow(t.Context(), `select remembers_from from inbox_horizon`).Scan(&horizon))
	return int(horizon.Sub(b.today) / day)
}
