package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// Nor does a replay end at such a handler: its dead letter has failed, and the others are taken up.
func TestAReplayWhoseHandlerIsAlwaysLate(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			poison, other := named("order-1", "a"), named("order-2", "b")
			mux, refused := inbox.NewMux(), true
			inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
				switch {
				case refused:
					return inbox.Permanent(errors.New("never"))
				case e.ID == poison.ID:
					return late(ctx, tx, e, data)
				}
				return healthy(ctx, tx, e, data)
			})
			b.Config.HandlerTimeout, b.Config.MaxAttempts = time.Second, 5
			in := b.Inbox(t)
			require.NoError(t, deliver(in, mux, whole(t, poison, 1)))
			require.NoError(t, deliver(in, mux, whole(t, other, 2)))
			refused = false
			replayer := newReplayer(t, in, mux.HandleMessage)
			report, err := replayer.Replay(t.Context(), operate.Filter{}, replay.Options{By: "ana"})
			require.NoError(t, err)
			require.Equal(t, []int{1, 1}, []int{report.Failed, report.Applied})
			require.Equal(t, inbox.CodeHandlerTimeout, report.Problems[0].Code)
			require.Equal(t, 1, b.Effects(t, other.ID))
		})
	}
}

// What a replay waits for before its handler runs is not the dead letter's fault.
func TestAReplayThatWaitsForAnotherTransaction(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]string{
		"the letter":    `select from dead_letter for share`,
		"the watermark": `insert into inbox_watermark values ('test', 'a', 0)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			c.fall("bad")
			c.deliver(t, sick("a", 1, "bad"))
			c.Config.HandlerTimeout = 300 * time.Millisecond
			tx, err := c.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), held)
			require.NoError(t, err)
			c.open(t)
			_, err = c.taker.Replay(t.Context(), operate.Filter{}, replay.Options{By: "ana"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, 1, c.Count(t, `select count(*) from dead_letter where replays = 0 and code = 'handler_failed'`))
			c.heal()
			require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
		})
	}
}
