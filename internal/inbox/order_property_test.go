package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestAnyOrderComesToTheSame(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"late", "replays", "discards"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(mode, " ", seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same story each time
				c := newClinic(t, 1+r.IntN(9), acceptsOne)
				wanted, come := stories(r, 12, mode != "late")
				c.fall("bad")
				for events := range slices.Chunk(come, 7) {
					c.deliver(t, events...)
					switch {
					case mode == "discards" && r.IntN(2) == 0:
						c.discardOne(t, r)
					case mode == "replays" && r.IntN(4) == 0:
						c.heal()
						c.replay(t, deadletter.Filter{})
						c.fall("bad")
					}
					if r.IntN(3) == 0 {
						c.resume(t)
					}
				}
				c.heal()
				if mode != "late" {
					c.replay(t, deadletter.Filter{})
				}
				c.resume(t)
				c.requireNothingWaits(t)
				discarded := c.List(t, `select event_id from dead_letter where state = 'discarded'`)
				for key, all := range wanted {
					all = slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(discarded, id) })
					require.Equal(t, append([]string{}, all...),
						c.List(t, `select event_id from ledger where event_id = any($1) order by n`, wanted[key]), key)
				}
			})
		}
	}
}

// stories returns the events as they come, and by key the ids of those with a handler, in order.
func stories(r *rand.Rand, keys int, poison bool) (wanted map[string][]string, come []event.Event) {
	wanted = make(map[string][]string)
	queues := make([][]event.Event, keys)
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
	const failed = ` from dead_letter where state = 'waiting' and class <> 'parked'`
	if n := c.Count(t, `select count(*)`+failed); n > 0 {
		id := c.Count(t, `select id`+failed+` order by id offset $1 limit 1`, r.IntN(n))
		c.discard(t, deadletter.Filter{IDs: []int64{int64(id)}})
	}
}
