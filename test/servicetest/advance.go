package servicetest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

// Advance lets time pass for what a service's database has written down: scheduled events and retries become due,
// leases run out, dead letters grow older. Times of the service's own tables pass with it where they are named, as
// "table.column". The clocks do not change, of the database or of the process: what is written from now on has the
// time of now.
func Advance(t testing.TB, pool *pgxpool.Pool, d time.Duration, own ...string) {
	t.Helper()
	inboxtest.Advance(t, pool, d)
	var hasLeases bool
	require.NoError(t, pool.QueryRow(t.Context(), selectHasLeases).Scan(&hasLeases))
	if hasLeases {
		pgtest.AdvanceLeases(t, pool, d)
	}
	pgtest.MoveBack(t, pool, d, own...)
	outboxtest.Advance(t, pool, d) // the last: it wakes the relay
}
