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

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestReplaysBesideTwoOwners(t *testing.T) { //nolint:paralleltest // it stops all others
	shared := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := shared.again(t)
		var events []event.Event
		wanted := map[string][]string{}
		for i := range rapid.IntRange(2, 12).Draw(rt, "events") {
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
			e := payload(v(key, int64(len(wanted[key])+1)), fmt.Sprintf(`{"value":"%d"}`, i))
			events, wanted[key] = append(events, e), append(wanted[key], e.ID)
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
		mux := muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, d testData) error {
			var i int
			if _, err := fmt.Sscan(d.Value, &i); err != nil {
				return err
			}
			if left[i].Add(-1) >= 0 {
				return errSick
			}
			return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
		})
		b.Config.MaxAttempts = 2
		b.Config.Order = rapid.SampledFrom([]inbox.Order{inbox.Strict, inbox.Unordered}).Draw(rt, "order")
		var all errgroup.Group
		owners, replayers := make([]*inbox.Inbox, 2), make([]*inbox.Replayer, 2)
		for n := range owners {
			b.Config.Batch = rapid.IntRange(1, 6).Draw(rt, "batch")
			owners[n] = b.Inbox(t)
			replayers[n] = inbox.NewReplayer(owners[n], mux.HandleMessage)
			all.Go(func() error {
				msgs := make([]*message.Message, len(events))
				for i, e := range events {
					msgs[i] = whole(t, e, int64(i))
				}
				_, err := owners[n].BatchMiddleware(mux.HandleMessage)(t.Context(), msgs)
				return err
			})
			all.Go(func() error {
				for range 2 {
					_ = replayers[n].Replay(t.Context(), deadletter.Filter{}, byAna)
					_ = replayers[n].ResumeRound(t.Context())
				}
				return nil
			})
		}
		require.NoError(rt, all.Wait())
		calm.Store(true)
		for i := range left {
			left[i].Store(0)
		}
		noFailure := func(r inbox.Result) { require.Empty(rt, r.Code, r.Error) }
		last := inbox.Options{Change: audit.Change{By: "ana"}, OnResult: noFailure}
		require.NoError(rt, replayers[1].Replay(t.Context(), deadletter.Filter{}, last))
		b.requireNothingWaits(t)
		for _, ids := range wanted {
			effects := b.List(t, `select event_id from ledger where event_id = any($1) order by n`, ids)
			if b.Config.Order == inbox.Strict {
				require.Equal(rt, ids, effects)
			}
			require.ElementsMatch(rt, ids, effects)
		}
	})
}
