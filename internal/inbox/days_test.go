package inbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const day = 24 * time.Hour

// atNoon puts the clock of the bundle's database to noon of the day on which its tables were made, so that no test of
// days runs into the next one.
func (b *bundle) atNoon(t *testing.T) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `
		select (regexp_match(pg_get_expr(relpartbound, oid), 'TO \(''([^'']+)'))[1]::timestamptz at time zone 'UTC'
		from pg_class where relname = 'inbox_past'`).Scan(&b.today))
	b.exec(t, fmt.Sprintf(`
		create schema noon;
		create function noon.clock_timestamp() returns timestamptz language sql as
			$$ select pg_catalog.clock_timestamp() + interval '%d ms' $$;
		do $$ begin
			execute format('alter database %%I set search_path = public, noon, pg_catalog', current_database());
		end $$`, time.Until(b.today.Add(12*time.Hour)).Milliseconds()))
	b.pool.Reset() // for the sessions that there are
}

// split gives the last so many days a partition each, as if the inbox had been there.
func (b *bundle) split(t *testing.T, days int) {
	t.Helper()
	b.atNoon(t)
	b.tidy(t, b.janitor(t, 3000*day)) // the days ahead
	b.exec(t, `drop table inbox_past`)
	for n := 1; n <= days; n++ {
		from := b.today.AddDate(0, 0, -n)
		b.exec(t, fmt.Sprintf(`create table %s partition of inbox for values from ('%s') to ('%s')`,
			"inbox_"+from.Format("20060102"), from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
}

func (b *bundle) partitions(t *testing.T) int {
	t.Helper()
	return b.count(t, `select count(*) from pg_inherits where inhparent = 'inbox'::regclass`)
}
