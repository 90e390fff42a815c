package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
)

// A new column of times is moved with a test's clock, or said not to be.
func TestTimesOfLeasesThatTestsMove(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Lease: time.Minute})
	pgtest.RequireTimes(t, b.pool, "^lease", pgtest.LeaseTimes, nil)

	b.add(t, "event-1")
	require.NoError(t, b.claim(t).record(t.Context(), outcome{state: Pending, reason: "away", pause: time.Hour}))
	b.requireNoneDue(t)
	pgtest.AdvanceLeases(t, b.pool, time.Hour)
	require.Equal(t, 2, b.claim(t).Attempt)
	pgtest.AdvanceLeases(t, b.pool, time.Minute)
	b.sweep(t)
	require.Equal(t, 3, b.claim(t).Attempt, "a lease that was not renewed has run out")
}
