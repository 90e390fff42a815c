package inbox_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// The key does not compress: an index accepts a compressible key far beyond its limit.
func TestALongKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	key := make([]byte, 10_000)
	for i := range key {
		key[i] = byte('!' + rand.IntN(90))
	}
	long, longest := string(key[:event.MaxKeyBytes]), string(key)
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{
		inbox.Dead, inbox.Dead, inbox.Applied, inbox.Dead, inbox.Parked,
	}, c.deliver(t, v(longest, 1), v(longest, 0), v(long, 1), sick(long, 2, "bad"), v(long, 3)))
	c.heal()
	refused := "refused " + string(event.CodeInvalidKey)
	require.Equal(t, results(2, refused), c.replay(t, deadletter.Filter{Key: longest}))
	require.Equal(t, results(2, "applied"), c.replay(t, deadletter.Filter{Key: long}))
}
