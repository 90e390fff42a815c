package eventing_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// A key that only waits, and one whose event was discarded, need no row.
func TestProjectionsAreComparedWithTheirKeys(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Inbox)
	for _, sql := range []string{
		`create table public.thing (name text, version bigint)`,
		`insert into public.thing values ('equal', 2), ('behind', 1), ('unknown', 1)`,
		`insert into public.inbox_key (consumer, key, version, parked_from) values ('c', 'equal', 2, null),
			('c', 'behind', 2, null), ('c', 'missing', 1, null), ('c', 'waits', 0, 1), ('c', 'discarded', 1, null)`,
		`insert into public.dead_letter (consumer, event_id, event_type, version, key, headers, payload, topic, partition,
			record_offset, class, code, error, attempts, first_failed_at, holds, state, settled_at)
			values ('c', 'e', 't', 1, 'discarded', '[]', '', '', 0, 0, 'permanent', 'c', 'e', 1, clock_timestamp(), true,
			'discarded', clock_timestamp())`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	check := eventing.CheckProjection("things", "public.thing", "name", "c")
	rows, err := pool.Query(t.Context(), check.SQL, check.Args...)
	require.NoError(t, err)
	var found []string
	var id, key, detail string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&id, &key, &version, &detail}, func() error {
		found = append(found, detail)
		return nil
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"the row in public.thing is at version 1, its events at 2",
		"the row in public.thing is at version 0, its events at 1",
		"the row in public.thing is at version 1, its events at 0",
	}, found)
}
