package relay

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

var orders = flag.Int("outbox.orders", 4, "random histories of TestRandomFailuresInvertNoKey")

// The broker takes a record, refuses it for now or for good, or does not answer, before or after it has written it.
// Calls are short, keys are parked early, and relays die. No version of a key is on the log before all earlier ones.
func TestRandomFailuresInvertNoKey(t *testing.T) {
	t.Parallel()
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	for n := range *orders {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			w := newWorld(t, 2)
			w.log.mix = shuffleBy(rng)
			w.cfg.patience, w.cfg.attempts, w.cfg.parkedRetryMax = time.Nanosecond, 1, time.Millisecond
			w.leadAndSettle()
			for range 15 {
				w.misbehave(rng)
				for range rng.IntN(6) {
					w.add(string(rune('a' + rng.IntN(4))))
				}
				w.callLimit = 1 + rng.IntN(4)
				for range rng.IntN(4) {
					w.ends.lookAt, w.flushAt = time.Time{}, time.Time{}
					_, err := w.round(t.Context())
					require.NoError(t, err)
				}
				if rng.IntN(4) == 0 {
					w.lead()
				}
				w.requireOrder()
			}
			w.log.before, w.log.after = nil, nil
			for range 10 {
				w.retryParked()
			}
			w.add("a", "b", "c", "d") // a heal without rows ends with the next page
			w.settle()
			w.requireOrder()
			w.requireWhole()
		})
	}
}

// Each record has its own bad luck, and a broker that failed once may take it the next time.
func (w *world) misbehave(rng *rand.Rand) {
	answer := func(*message.Message) error {
		switch rng.IntN(12) {
		case 0:
			return errNotSent
		case 1:
			return unsentError{errNotSent}
		case 2:
			return unfinishedError{errNotSent}
		case 3:
			return refusedError{errors.New("too large")}
		}
		return nil
	}
	w.log.before, w.log.after = answer, nil
	if rng.IntN(3) == 0 {
		w.log.after = func(m *message.Message) error {
			if rng.IntN(6) == 0 {
				return errNotSent
			}
			return nil
		}
	}
}

type refusedError struct{ error }

func (refusedError) Permanent() bool { return true }

func (w *world) requireOrder() {
	w.Helper()
	for p := range w.log.partitions {
		last := map[string]int64{}
		for _, m := range w.log.records[p] {
			e, err := event.FromMessage(m)
			require.NoError(w, err)
			require.LessOrEqual(w, e.Version, last[e.Key]+1, "key %s: version %d follows %d", e.Key, e.Version, last[e.Key])
			last[e.Key] = max(last[e.Key], e.Version)
		}
	}
}
