package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
)

func TestTimePassesForLeases(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Lease: time.Minute})
	b.add(t, "event-1")
	require.NoError(t, b.claim(t).record(t.Context(), outcome{state: Pending, reason: "away", pause: time.Hour}))
	b.requireNoneDue(t)
	pgtest.Advance(t, b.pool, time.Hour)
	require.Equal(t, 2, b.claim(t).Attempt)
	pgtest.Advance(t, b.pool, time.Minute)
	b.sweep(t)
	require.Equal(t, 3, b.claim(t).Attempt, "a lease that was not renewed has run out")
}
