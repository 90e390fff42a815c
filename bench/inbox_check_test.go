package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestCheckNoticesWhatABenchmarkMustNotOverlook(t *testing.T) {
	t.Parallel()
	r := newRecords(600, 12, 48, 10, time.Now().UTC().Truncate(time.Millisecond))
	v := inboxVariantOf("batch200")
	for name, tc := range map[string]struct{ spoil, complaint string }{
		"nothing":     {``, ""},
		"lost effect": {`delete from effect where number = 7`, "effects:"},
		"effect twice": {
			`insert into effect (event_id, number, email) select event_id, number, email from effect limit 1`, "effects:",
		},
		"one for another": {
			`update effect set event_id = (select min(event_id) from effect), number = 0 where number = 7`,
			"events with an effect",
		},
		"out of order": {`update effect set position = default where number < 48`, "effects out of order"},
		"id not known": {`delete from inbox where event_id = (select min(event_id) from inbox)`, "ids remembered"},
		"partition not let go": {
			`insert into inbox_owner (consumer, topic, partition, owner) values ('bench', 't', 0, 'o')`,
			"left: 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := checkedPool(t)
			require.NoError(t, writeRows(false)(r)(t.Context(), pool))
			_, err := pool.Exec(t.Context(), tc.spoil)
			require.NoError(t, err)
			err = r.check(t.Context(), pool, v)
			if tc.complaint == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.complaint)
		})
	}
}

func checkedPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t, migrations.Inbox)
	_, err := pool.Exec(t.Context(), effectSQL)
	require.NoError(t, err)
	return pool
}
