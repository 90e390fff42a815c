package relay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

var heals = flag.Int("outbox.heals", 6, "random histories of TestRandomHistoriesAreHealed")

// A history has losses of the log with crashes, or one restore with crashes.
func TestRandomHistoriesAreHealed(t *testing.T) {
	t.Parallel()
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	for n := range *heals {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := history{newWorld(t, 2), rand.New(rand.NewPCG(seed, uint64(n))), false}
			h.log.mix = shuffleBy(h.rng)
			h.cfg.patience, h.cfg.attempts, h.cfg.parkedRetryMax = time.Nanosecond, 1, time.Millisecond
			h.leadAndSettle()
			mayRestore := n%2 == 0
			var steps []string
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(strings.Join(steps, ", "))
				}
			})
			for range 12 {
				if n%3 > 0 {
					h.misbehave(h.rng)
					h.loseUnacknowledged(!mayRestore)
				}
				steps = append(steps, h.step(mayRestore))
			}
			h.log.before, h.log.after, h.log.asked, h.log.dead = nil, nil, nil, false
			h.leadAndSettle()
			h.add("a", "b", "c", "d")
			for range 10 {
				h.retryParked()
			}
			h.requireWhole()
		})
	}
}

type history struct {
	*world
	rng      *rand.Rand
	isBacked bool
}

// loseUnacknowledged lets a consumer read a record before its call fails, and the log lose it. A partition may not tell
// its end.
func (h *history) loseUnacknowledged(mayLose bool) {
	silent := int32(h.rng.IntN(4))
	h.log.asked = func(p int32) error {
		if p == silent {
			return errNotSent
		}
		return nil
	}
	after := h.log.after
	if after == nil || !mayLose {
		return
	}
	h.log.after = func(m *message.Message) error {
		err := after(m)
		if err != nil && h.rng.IntN(2) == 0 {
			p := h.log.PartitionOf(m.Metadata[event.KeyMetadata], h.log.partitions)
			h.consumer.readTo(p, h.log.end(p))
			h.log.cut(p, h.log.end(p)-1)
		}
		return err
	}
}

func (h *history) step(mayRestore bool) string {
	keys := []string{"a", "b", "c", "d"}
	p := int32(h.rng.IntN(2))
	switch n := h.rng.IntN(10); {
	case n < 4:
		added := keys[:h.rng.IntN(len(keys))+1]
		h.add(added...)
		return "add " + strings.Join(added, "")
	case n < 6:
		h.settle()
		return "publish"
	case n == 6:
		end := h.log.end(p)
		h.consumer.readTo(p, end-int64(h.rng.IntN(2)))
		return "consume"
	case n == 7:
		h.add(keys...)
		h.log.before, h.log.after, h.log.asked = nil, nil, nil
		h.crashAt(h.rng.IntN(4)+1, h.rng.IntN(2) == 0)
		h.die()
		h.lead()
		return "crash"
	case !mayRestore:
		keep := h.log.end(p) - int64(h.rng.IntN(4))
		h.log.cut(p, max(keep, 0))
		if h.consumer.next[p] > h.log.end(p) {
			h.consumer.consume() // a running relay notices
		}
		if h.rng.IntN(2) == 0 {
			h.lead()
		}
		return fmt.Sprintf("lose %d/%d", p, keep)
	case !h.isBacked:
		h.backUp("backup")
		h.isBacked = true
		return "back up"
	default:
		h.goBack("backup")
		h.isBacked = false
		if h.rng.IntN(2) == 0 {
			h.add(keys...)
		}
		h.leadAndSettle()
		return "restore"
	}
}

func TestAHealIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	w.produce("a", "b")
	w.log.cut(0, 1)
	w.settle()
	require.InDelta(t, 1, testutil.ToFloat64(w.metrics.brokerLosses), 0)
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_cursor
		where broker_back_at is not null and database_back_at is null`))
	require.Positive(t, testutil.ToFloat64(w.metrics.resent))
	w.lose("a")
	w.leadAndSettle()
	require.InDelta(t, 1, testutil.ToFloat64(w.metrics.lostEvents), 0)
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_cursor where database_back_at is not null`))
	w.requireWhole()
}
