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

// A history has crashes with losses of the log, with restores, or with both. A loss of the log is healed before a
// restore. What the database lost is found before a loss of the log: what both have lost is nowhere.
func TestRandomHistoriesAreHealed(t *testing.T) {
	t.Parallel()
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	for n := range *heals {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := history{world: newWorld(t, 2), rng: rand.New(rand.NewPCG(seed, uint64(n)))}
			h.log.mix = shuffleBy(h.rng)
			h.cfg.patience, h.cfg.attempts, h.cfg.parkedRetryMax = time.Nanosecond, 1, time.Millisecond
			h.leadAndSettle()
			h.mayLose, h.mayRestore = n%3 != 0, n%3 != 1
			var steps []string
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(strings.Join(steps, ", "))
				}
			})
			for range 12 {
				if n%4 > 0 {
					h.misbehave()
				}
				steps = append(steps, h.step())
			}
			h.heal()
			h.requireWhole()
		})
	}
}

type history struct {
	*world
	rng                 *rand.Rand
	mayLose, mayRestore bool
	refused             string // a key
	isBacked            bool
	isIll               bool // the log may have lost something
	isBehind            bool // the database may have lost something
}

func (h *history) findLost() {
	h.log.asked = nil
	h.leadAndSettle()
	h.isBehind = false
}

func (h *history) heal() {
	h.log.before, h.log.after = nil, nil
	h.findLost()
	h.add("a", "b", "c", "d")
	for range 10 {
		h.retryParked()
	}
	h.isIll = false
}

func (h *history) loseFrom(p int32, keep int64) {
	h.log.cut(p, max(keep, 0))
	h.isIll = true
}

// misbehave lets a partition not tell its end and a key be refused. A consumer may read a record before its call fails
// and the log loses it.
func (h *history) misbehave() {
	h.world.misbehave(h.rng)
	h.log.asked = silent(int32(h.rng.IntN(4)))
	if h.rng.IntN(2) == 0 {
		h.refused = string(rune('a' + h.rng.IntN(6)))
	}
	before := h.log.before
	h.log.before = func(m *message.Message) error {
		if m.Metadata[event.KeyMetadata] == h.refused {
			return errNotSent
		}
		return before(m)
	}
	after := h.log.after
	if after == nil || !h.mayLose {
		return
	}
	h.log.after = func(m *message.Message) error {
		err := after(m)
		if err != nil && !h.isBehind && h.rng.IntN(2) == 0 {
			p := h.log.PartitionOf(m.Metadata[event.KeyMetadata], h.log.partitions)
			h.consumer.readTo(p, h.log.end(p))
			h.loseFrom(p, h.log.end(p)-1)
		}
		return err
	}
}

func (h *history) step() string {
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
	case h.mayLose && (!h.mayRestore || h.rng.IntN(2) == 0):
		if h.isBehind {
			h.findLost()
		}
		keep := h.log.end(p) - int64(h.rng.IntN(6))
		h.loseFrom(p, keep)
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
		if h.isIll {
			h.heal()
		}
		h.goBack("backup")
		h.isBehind = true
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
