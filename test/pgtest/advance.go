package pgtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// eventTimes are left by [Advance]: an event's time follows from its id, and a record's is compared with the log.
var eventTimes = []string{
	"outbox.occurred_at", "outbox_scheduled.occurred_at", "outbox_point.at", "outbox_lost.appended_at",
	"outbox_lost.found_at", "inbox.event_time", "inbox_horizon.remembers_from",
}

const selectTimes = `
select format('%s.%s', c.relname, a.attname) from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname ~ '^(outbox|inbox|dead_letter|lease)' and a.atttypid = 'timestamptz'::regtype and not a.attisdropped`

// Advance makes the times of the outbox, the inbox and the leases earlier by d, and wakes the relay. Own are columns of
// other tables, as "table.column". No clock changes.
func Advance(t testing.TB, pool *pgxpool.Pool, d time.Duration, own ...string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(t.Context(), selectTimes)
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("read columns: %w", err)
		}
		columns = slices.DeleteFunc(columns, func(name string) bool { return slices.Contains(eventTimes, name) })
		for _, name := range append(columns, own...) {
			table, column, _ := strings.Cut(name, ".")
			sql := fmt.Sprintf(`update public.%[1]s set %[2]s = %[2]s - make_interval(secs => $1)`,
				pgx.Identifier{table}.Sanitize(), pgx.Identifier{column}.Sanitize())
			if _, err := tx.Exec(t.Context(), sql, d.Seconds()); err != nil {
				return fmt.Errorf("move %s: %w", name, err)
			}
		}
		_, err = tx.Exec(t.Context(), `select pg_notify('outbox', '')`)
		return err
	}))
}
