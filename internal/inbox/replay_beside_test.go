//go:build faults

package inbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// Replays run beside two owners of one partition, who both get all of it in batches of their own size, while some
// handlers fail and connections are lost. When the handlers are well again and everything was replayed, each event has
// had its effect once, in the order of its key, and nothing waits.
func TestReplaysBesideTwoOwners(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	shared.Exec(t, `alter table ledger add column key text, add column version bigint`)
	rapid.Check(t, func(rt *rapid.T) {
		b := shared.again(t)
		var events []cloudevent.Event
		next := map[string]int64{}
		for i := range rapid.IntRange(2, 12).Draw(rt, "events") {
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
			next[key]++
			e := v(key, next[key])
			e.Data = fmt.Appendf(nil, `{"value":"%d"}`, i)
			events = append(events, e)
		}
		fails := rapid.SliceOfN(rapid.IntRange(0, 3), len(events), len(events)).Draw(rt, "failures")
		losses := rapid.SliceOfNDistinct(rapid.Int64Range(1, 120), 0, 6, rapid.ID).Draw(rt, "answers lost")
		left := make([]atomic.Int64, len(events))
		for i, n := range fails {
			left[i].Store(int64(n))
		}
		lost := make(map[int64]bool, len(losses))
		for _, n := range losses {
			lost[n] = true
		}
		var answers atomic.Int64
		var calm atomic.Bool
		pool := b.severing(t, func([]byte) bool { return !calm.Load() && lost[answers.Add(1)] })
		defer pool.Close()
		mux := inbox.NewMux()
		inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, d testData) error {
			var i int
			if _, err := fmt.Sscan(d.Value, &i); err != nil {
				return err
			}
			if left[i].Add(-1) >= 0 {
				return errSick
			}
			return inbox.Queue(ctx, tx, `insert into ledger (event_id, key, version) values ($1, $2, $3)`,
				e.ID, e.Key, e.Version)
		})
		b.Config.Versioned, b.Config.MaxAttempts = true, 2
		b.Config.OnGap = rapid.SampledFrom([]inbox.GapPolicy{inbox.GapAllow, inbox.GapPark}).Draw(rt, "on gap")
		var all errgroup.Group
		owners, replayers := make([]*inbox.Inbox, 2), make([]*replay.Replayer, 2)
		for n := range owners {
			b.Config.Batch = rapid.IntRange(1, 6).Draw(rt, "batch")
			owners[n] = b.Inbox(t)
			replayers[n] = newReplayer(t, owners[n], mux.HandleMessage)
			all.Go(func() error {
				msgs := make([]*message.Message, len(events))
				for i, e := range events {
					msgs[i] = whole(t, e, int64(i))
				}
				_, err := owners[n].BatchMiddleware(mux.HandleMessage)(t.Context(), msgs)
				return err
			})
		}
		all.Go(func() error {
			for range 3 {
				_, _ = replayers[0].Replay(t.Context(), operate.Filter{}, replay.Options{By: "ana"})
			}
			return nil
		})
		require.NoError(rt, all.Wait())
		calm.Store(true)
		for i := range left {
			left[i].Store(0)
		}
		report, err := replayers[1].Replay(t.Context(), operate.Filter{}, replay.Options{By: "ana"})
		require.NoError(rt, err)
		require.Empty(rt, report.Problems)
		require.Zero(rt, b.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
		b.requireOnceInOrder(t, len(events))
	})
}
