package consumer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

// answer is what a call of the handler returns.
type answer struct {
	handled int
	err     error
}

// runByScript has a partition with n records worked on by a handler that answers as written, on a clock of its own, and
// lets the partition go with the last answer. It returns the waits before the calls and what was logged.
func runByScript(t *testing.T, n, batch int, script ...answer) (waits []time.Duration, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		m := quick(batch, 0)
		defer m.cancel()
		m.cfg.NackBackoff, m.log = time.Second, slog.New(slog.NewTextHandler(&lines, nil))
		last := time.Now()
		p := newFakeSession(n).ready(m)
		m.handle = func(context.Context, []*message.Message) (int, error) {
			waits = append(waits, time.Since(last))
			last = time.Now()
			now := script[0]
			if script = script[1:]; len(script) == 0 {
				p.leave(nil)
			}
			return now.handled, now.err
		}
		p.work()
		log = lines.String()
	})
	return waits, log
}

// requireAbout compares waits, each of which is up to a fifth shorter or longer.
func requireAbout(t *testing.T, want, waits []time.Duration) {
	t.Helper()
	require.Len(t, waits, len(want))
	for i := range want {
		require.InDelta(t, want[i], waits[i], float64(want[i])/5, "%v", waits)
	}
}

// Each failure starts with the first wait and is told once, also when much went well before it.
func TestTheBackoffBeginsAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	down, ok := answer{0, errors.New("down")}, answer{1, nil}
	waits, log := runByScript(t, 4, 1, down, down, down, down, ok, ok, down, down, ok, answer{1, nil})
	const s = time.Second
	requireAbout(t, []time.Duration{0, s, 2 * s, 4 * s, 8 * s, 0, 0, s, 2 * s, 0}, waits)
	require.Equal(t, 2, strings.Count(log, "trying again"), log)

	part := answer{1, errors.New("the second one")}
	waits, log = runByScript(t, 4, 4, part, answer{0, errors.New("the second one")}, part, answer{2, nil})
	requireAbout(t, []time.Duration{0, s, 2 * s, s}, waits)
	require.Equal(t, 2, strings.Count(log, "trying again"), log)
}

// What is not handled because the partition goes to another member is no failure.
func TestAPartitionThatIsLetGoTellsOfNoFailure(t *testing.T) {
	t.Parallel()
	_, log := runByScript(t, 3, 3, answer{1, errPartitionLost})
	require.Empty(t, log)
}
