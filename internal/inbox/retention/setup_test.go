package retention_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const day = 24 * time.Hour

// bundle is an inbox with a janitor.
type bundle struct {
	*inboxtest.Bundle
	today time.Time // of atNoon
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{Bundle: inboxtest.New(t)}
}

func (b *bundle) janitor(t *testing.T, kept time.Duration, change ...func(*retention.Config)) *retention.Janitor {
	t.Helper()
	cfg := retention.Config{Pool: b.Pool, Retention: kept, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	j, err := retention.New(cfg)
	require.NoError(t, err)
	return j
}

// tidy is one round, due or not.
func (b *bundle) tidy(t *testing.T, j *retention.Janitor) retention.Round {
	t.Helper()
	b.Exec(t, `update inbox_janitor set due_at = 'epoch'`)
	round, err := j.Tidy(t.Context())
	require.NoError(t, err)
	require.True(t, round.Led)
	return round
}

// atNoon puts the clock of the bundle's database to noon of the day on which its tables were made, so that no test of
// days runs into the next one.
func (b *bundle) atNoon(t *testing.T) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
		select (regexp_match(pg_get_expr(relpartbound, oid), 'TO \(''([^'']+)'))[1]::timestamptz at time zone 'UTC'
		from pg_class where relname = 'inbox_past'`).Scan(&b.today))
	b.Exec(t, fmt.Sprintf(`
		create schema noon;
		create function noon.clock_timestamp() returns timestamptz language sql as
			$$ select pg_catalog.clock_timestamp() + interval '%d ms' $$;
		do $$ begin
			execute format('alter database %%I set search_path = public, noon, pg_catalog', current_database());
		end $$`, time.Until(b.today.Add(12*time.Hour)).Milliseconds()))
	b.Pool.Reset() // for the sessions that there are
}

// split gives the last so many days a partition each, as if the inbox had been there.
func (b *bundle) split(t *testing.T, days int) {
	t.Helper()
	b.atNoon(t)
	b.tidy(t, b.janitor(t, 3000*day)) // the days ahead
	b.Exec(t, `drop table inbox_past`)
	for n := 1; n <= days; n++ {
		from := b.today.AddDate(0, 0, -n)
		b.Exec(t, fmt.Sprintf(`create table %s partition of inbox for values from ('%s') to ('%s')`,
			"inbox_"+from.Format("20060102"), from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
}

func (b *bundle) partitions(t *testing.T) int {
	t.Helper()
	return b.Count(t, `select count(*) from pg_inherits where inhparent = 'inbox'::regclass`)
}
