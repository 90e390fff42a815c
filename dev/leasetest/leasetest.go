// Package leasetest lets time pass for leases.
package leasetest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/test/pgtest"
)

// Moved are the times that [Advance] moves.
var Moved = []string{"lease.due_at", "lease.added_at", "lease.ended_at"}

// Advance lets time pass for effects: the next attempt is due, and a claimant's lease runs out that was not renewed.
func Advance(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	pgtest.MoveBack(t, pool, d, Moved...)
}
