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

// MoveBack makes the times in these columns, "table.column" of the schema public, earlier by d: what waits by the
// database's clock finds that so much time has passed.
func MoveBack(t testing.TB, pool *pgxpool.Pool, d time.Duration, columns ...string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, name := range columns {
			table, column, _ := strings.Cut(name, ".")
			sql := fmt.Sprintf(`update public.%[1]s set %[2]s = %[2]s - make_interval(secs => $1)`,
				pgx.Identifier{table}.Sanitize(), pgx.Identifier{column}.Sanitize())
			if _, err := tx.Exec(t.Context(), sql, d.Seconds()); err != nil {
				return fmt.Errorf("move %s: %w", name, err)
			}
		}
		return nil
	}))
}

const selectTimes = `
select format('%s.%s', c.relname, a.attname) from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and c.relname ~ $1 and a.atttypid = 'timestamptz'::regtype and not a.attisdropped`

// RequireTimes fails the test when the tables whose names fit have other columns of times than those that are moved
// with the clock and those that are not: a new one belongs into one of the lists.
func RequireTimes(t testing.TB, pool *pgxpool.Pool, tables string, moved, others []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), selectTimes, tables)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, found, slices.Concat(moved, others))
}
