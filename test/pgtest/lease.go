package pgtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// LeaseTimes are the columns that [AdvanceLeases] moves.
var LeaseTimes = []string{"lease.due_at", "lease.added_at", "lease.ended_at"}

// AdvanceLeases lets time pass for effects: the next attempt is due, and a lease that was not renewed runs out.
func AdvanceLeases(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	MoveBack(t, pool, d, LeaseTimes...)
}
