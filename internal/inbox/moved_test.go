package inbox_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
)

// The watermark travels with the handlers' queued writes and the commit, in one round trip. The
// inbox cannot read its answer in between, so a watermark that another transaction has moved must
// by itself keep the commit from happening.
func TestWatermarkMovedMeanwhileKeepsTheCommitFromHappening(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"one by one": 1, "in a batch": 200} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			outcomes := map[string]inbox.Outcome{}
			b.Config.Versioned, b.Config.Batch = true, batch
			b.Host.OnOutcome = func(e cloudevent.Event, o inbox.Outcome) { outcomes[e.ID] = o }
			_, err := b.Pool.Exec(t.Context(),
				`insert into inbox_watermark (consumer, key, version) values ('test', 'a', 1), ('test', 'b', 1)`)
			require.NoError(t, err)

			var other sync.Once
			mux := inbox.NewMux()
			inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, _ testData) error {
				if e.Key == "b" {
					other.Do(func() { _, err = b.Pool.Exec(ctx, `update inbox_watermark set version = 2 where key = 'b'`) })
				}
				return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
			})
			first, second := v("a", 2), v("b", 2)
			msgs := []*message.Message{record(t, first, 1), record(t, second, 2)}
			in := b.Inbox(t)
			for len(msgs) > 0 {
				n := min(batch, len(msgs))
				handled, handleErr := in.BatchMiddleware(mux.HandleMessage)(t.Context(), msgs[:n])
				require.NoError(t, handleErr)
				msgs = msgs[handled:]
			}
			require.NoError(t, err)
			require.Equal(t, map[string]inbox.Outcome{first.ID: inbox.Applied, second.ID: inbox.Stale}, outcomes)
			require.Equal(t, 1, b.Effects(t, first.ID))
			require.Zero(t, b.Effects(t, second.ID))
		})
	}
}
