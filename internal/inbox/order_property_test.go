package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Events of many keys come mixed, each key's in an order of its own, some twice, some of types without a handler.
// Some fail, are replayed or discarded meanwhile. Each key comes to the same in the end: every event that was not
// discarded has its effect once, in the order of its version, and none is left waiting.
func TestAnyOrderComesToTheSame(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"late", "replays", "discards", "passes"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(mode, " ", seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same story each time
				c := newClinic(t, 1+r.IntN(9), func(cfg *inbox.Config) {
					heedsOne(cfg)
					cfg.MaxJump = int64(2 + r.IntN(8))
					if mode == "passes" {
						cfg.OnDead = inbox.DeadPass
					}
				})
				wanted, come := stories(r, 40, mode != "late")
				c.fall("bad")
				for events := range slices.Chunk(come, 7) {
					c.deliver(t, events...)
					switch {
					case mode == "discards" && r.IntN(3) == 0:
						c.discardOne(t, r)
					case mode == "replays" && r.IntN(4) == 0:
						c.heal()
						c.replay(t, operate.Filter{})
						c.fall("bad")
					}
				}
				if mode == "late" || mode == "passes" {
					c.rounds(t, func() bool { // a key that takes its partition too long is left to the inbox's rounds
						return c.Count(t, `select count(*) from dead_letter where state = 'waiting' and class = 'parked'`) == 0
					})
				}
				c.heal()
				c.replay(t, operate.Filter{})
				require.Zero(t, c.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
				given := c.List(t, `select event_id from dead_letter where state = 'discarded' or outcome = 'stale'`)
				for key, all := range wanted {
					all = slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(given, id) })
					require.Equal(t, append([]string{}, all...),
						c.List(t, `select event_id from ledger where event_id = any($1) order by n`, wanted[key]), key)
				}
			})
		}
	}
}

// stories are the events of many keys as they come, and the ids of those with a handler by key, in order.
func stories(r *rand.Rand, keys int, poison bool) (wanted map[string][]string, come []cloudevent.Event) {
	wanted = make(map[string][]string)
	queues := make([][]cloudevent.Event, keys)
	for k := range queues {
		for version := range 1 + r.Int64N(7) {
			e := v(fmt.Sprint("key-", k), version+1)
			switch {
			case r.IntN(5) == 0:
				e.Type = ignoredType
			case poison && r.IntN(4) == 0:
				e = payload(e, `{"value":"bad"}`)
				fallthrough
			default:
				wanted[e.Key] = append(wanted[e.Key], e.ID)
			}
			queues[k] = append(queues[k], e)
			if r.IntN(4) == 0 {
				queues[k] = append(queues[k], e)
			}
		}
		r.Shuffle(len(queues[k]), func(i, j int) { queues[k][i], queues[k][j] = queues[k][j], queues[k][i] })
	}
	for len(queues) > 0 {
		k := r.IntN(len(queues))
		come = append(come, queues[k][0])
		if queues[k] = queues[k][1:]; len(queues[k]) == 0 {
			queues = slices.Delete(queues, k, k+1)
		}
	}
	return wanted, come
}

func (c *clinic) discardOne(t *testing.T, r *rand.Rand) {
	t.Helper()
	if n := c.Count(t, `select count(*) from dead_letter where state = 'waiting'`); n > 0 {
		id := c.Count(t, `select id from dead_letter where state = 'waiting' order by id offset $1 limit 1`, r.IntN(n))
		_, err := operate.NewStore(c.Pool).Discard(t.Context(), operate.Filter{IDs: []int64{int64(id)}},
			audit.Change{By: "ana"})
		require.NoError(t, err)
	}
}

// The event that was discarded had not failed, it waited for its predecessor, as what parked behind it does.
func TestADiscardedEventThatWaited(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	come := []cloudevent.Event{v("a", 1), v("a", 3), v("a", 4), v("a", 5), v("a", 2)}
	c.deliver(t, come[:4]...)
	_, err := operate.NewStore(c.Pool).Discard(t.Context(), operate.Filter{Code: inbox.CodeGap},
		audit.Change{By: "ana"})
	require.NoError(t, err)
	c.deliver(t, come[4])
	c.requireEffects(t, come[0], come[4], come[2], come[3])
}
