package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/testkit"
)

func TestTwoOwnersGetEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same story each time
			b := setup(t)
			b.Config.Order, b.Config.Batch, b.Config.MaxAttempts = inbox.Strict, 1+r.IntN(9), 2
			b.Config.ResumeEvery, b.Config.Accepts = pollEvery, acceptsTestType
			wanted, come := stories(r, 8, true)
			var healed atomic.Bool
			mux := muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
				if data.Value == "bad" && !healed.Load() {
					return errors.New("ill")
				}
				return effect(ctx, tx, e, data)
			})
			resuming, stop := context.WithCancel(t.Context())
			var owners, resumers errgroup.Group
			var replayers []*inbox.Replayer
			for range 2 {
				in := b.Inbox(t)
				replayer := inbox.NewReplayer(in, mux.HandleMessage)
				replayers = append(replayers, replayer)
				resumers.Go(func() error { return replayer.ResumeParked(resuming) })
				owners.Go(func() error {
					msgs := replayable(t, t.Context(), come...)
					for part := range slices.Chunk(msgs, 7) {
						if _, err := in.BatchMiddleware(mux.HandleMessage)(t.Context(), part); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if seed%2 == 0 {
				b.discardSome(t, r)
			}
			require.NoError(t, owners.Wait())
			healed.Store(true)
			testkit.Until(t, func() bool {
				for _, replayer := range replayers {
					err := replayer.Replay(t.Context(), deadletter.Filter{}, byAna)
					require.NoError(t, err)
				}
				return b.Count(t, `select count(*) from dead_letter where state = 'waiting'`) == 0
			})
			stop()
			require.NoError(t, resumers.Wait())
			discarded := b.List(t, `select event_id from dead_letter where state = 'discarded'`)
			for key, all := range wanted {
				left := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(discarded, id) })
				require.Equal(t, append([]string{}, left...),
					b.List(t, `select event_id from ledger where event_id = any($1) order by n`, all), key)
			}
			require.Zero(t, b.Count(t, `select count(*) from inbox_key where parked_from is not null`))
		})
	}
}

func (b *bundle) discardSome(t *testing.T, r *rand.Rand) {
	t.Helper()
	store := deadletter.NewStore(b.Pool)
	for range 3 {
		var letters []string
		testkit.Until(t, func() bool {
			letters = b.List(t, `select id::text from dead_letter where state = 'waiting' and class <> 'parked' order by id`)
			return len(letters) > 0
		})
		var id int64
		_, err := fmt.Sscan(letters[r.IntN(len(letters))], &id)
		require.NoError(t, err)
		_, err = store.Discard(t.Context(), deadletter.Filter{IDs: []int64{id}}, audit.Change{By: "ana"})
		require.NoError(t, err)
	}
}
