package inbox_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// However long its key is, a record comes to an end and its partition goes on. The key is one that does not compress:
// an index takes what does far beyond its limit.
func TestALongKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	key := make([]byte, 10_000)
	for i := range key {
		key[i] = byte('!' + rand.IntN(90))
	}
	long, longest := string(key[:cloudevent.MaxKeyBytes]), string(key)
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{
		inbox.Dead, inbox.Dead, inbox.Applied, inbox.Dead, inbox.Parked,
	}, c.deliver(t, v(longest, 1), v(longest, 0), v(long, 1), sick(long, 2, "bad"), v(long, 3)))
	c.heal()
	for _, options := range [][]func(*replay.Options){{dry}, nil} {
		report := c.replay(t, operate.Filter{Key: longest}, options...)
		require.Equal(t, 2, report.Refused)
		require.Equal(t, string(cloudevent.CodeInvalidKey), report.Problems[1].Code)
	}
	require.Equal(t, 2, c.replay(t, operate.Filter{Key: long}).Applied)
}
