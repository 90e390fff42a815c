package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestAReplayWhoseHandlerIsAlwaysLate(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, func(cfg *inbox.Config) {
				cfg.Order, cfg.HandlerTimeout, cfg.MaxAttempts = inbox.Unordered, time.Second, 5
			})
			poison, other := named("order-1", "a"), named("order-2", "b")
			refused := true
			c.handler = muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
				switch {
				case refused:
					return inbox.Permanent(errors.New("never"))
				case e.ID == poison.ID:
					return late(ctx, tx, e, data)
				}
				return healthy(ctx, tx, e, data)
			}).HandleMessage
			c.open(t)
			c.deliver(t, poison, other)
			refused = false
			require.Equal(t, []string{"failed handler_timeout", "applied"}, c.replay(t, deadletter.Filter{}))
			c.requireEffects(t, other)
		})
	}
}

func TestAReplayThatWaitsForAnotherTransaction(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]string{
		"the dead letter": `select from dead_letter for share`,
		"the key":         `select from inbox_key for share`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			c.fall("bad")
			c.deliver(t, sick("a", 1, "bad"))
			c.Config.HandlerTimeout = brief
			tx, err := c.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), held)
			require.NoError(t, err)
			c.open(t)
			err = c.replayer.Replay(t.Context(), deadletter.Filter{}, byAna)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, tx.Rollback(t.Context()))
			require.Equal(t, 1, c.Count(t, `select count(*) from dead_letter where replays = 0 and code = 'handler_failed'`))
			require.Zero(t, c.Count(t, `select count(*) from operator_action`))
			c.heal()
			c.Config.HandlerTimeout = waitLimit
			c.open(t)
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
		})
	}
}
