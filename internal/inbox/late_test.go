package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

const (
	slow  = `select pg_sleep(60)`
	brief = 300 * time.Millisecond // a handler's time
)

var lateHandlers = map[string]handlerFunc{
	"a slow statement": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
		_, err := tx.Exec(ctx, slow)
		return err
	},
	"a slow statement in the queue": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
		return inbox.Queue(ctx, tx, slow)
	},
	"a slow statement in a savepoint": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, slow)
			return err
		})
	},
	"a slow statement whose error is overlooked": func(
		ctx context.Context, tx pgx.Tx, e event.Event, data testData,
	) error {
		_, _ = tx.Exec(ctx, slow)
		return effect(ctx, tx, e, data)
	},
	"a wait": func(ctx context.Context, _ pgx.Tx, _ event.Event, _ testData) error {
		<-ctx.Done()
		return ctx.Err()
	},
	"a wait that is overlooked": func(ctx context.Context, tx pgx.Tx, _ event.Event, _ testData) error {
		<-ctx.Done()
		return nil
	},
}

// A machine that is frozen for as long makes this handler late too, so it is retried.
func healthy(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
	err := effect(ctx, tx, e, data)
	if err != nil && ctx.Err() != nil {
		return failure.AsTransient(err)
	}
	return err
}

func TestAHandlerThatIsAlwaysLateIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.Order, b.Config.HandlerTimeout, b.Config.MaxAttempts = inbox.Strict, brief, 2
			before, poison, behind := v("a", 1), v("b", 1), v("c", 1)
			calls := 0
			_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
				if e.ID != poison.ID {
					return healthy(ctx, tx, e, data)
				}
				calls++
				require.LessOrEqual(t, calls, 4, "in two batches, and twice alone")
				return late(ctx, tx, e, data)
			})
			msgs := []*message.Message{record(t, before, 1), record(t, poison, 2), record(t, behind, 3)}
			handled, err := handle(t.Context(), msgs)
			require.NoError(t, err)
			require.Len(t, msgs, handled)
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where event_id = $1 and class = 'unknown'
				and code = 'handler_timeout' and attempts >= 2 and error like 'handler ran longer than 300ms: %'`, poison.ID))
			require.Equal(t, []int{1, 0, 1},
				[]int{b.Effects(t, before.ID), b.Effects(t, poison.ID), b.Effects(t, behind.ID)})
		})
	}
}

func TestAnEventThatWaitsForItsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler handlerFunc
		taken   string
	}{
		"a write":                   {effect, `select from inbox_key for update`},
		"a queued write":            {queueing(nil), `select from inbox_key for update`},
		"a write, new key":          {effect, `insert into inbox_key values ('test', 'new', 1)`},
		"a queued write to new key": {queueing(nil), `insert into inbox_key values ('test', 'new', 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Exec(t, `insert into inbox_key values ('test', 'key-1', 1)`)
			other, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = other.Rollback(t.Context()) }()
			_, err = other.Exec(t.Context(), c.taken)
			require.NoError(t, err)
			impatient, stop := context.WithCancel(t.Context())
			b.Config.Order, b.Config.MaxAttempts, b.Config.HandlerTimeout = inbox.Latest, 1, brief
			failures := 0
			b.Host.OnFailure = func(context.Context, error) {
				if failures++; failures == 3 {
					stop()
				}
			}
			e := v("key-1", 2)
			if strings.HasPrefix(c.taken, "insert") {
				e.Key = "new"
			}
			in, handle := b.handle(t, c.handler)
			_, err = handle(impatient, records(t, impatient, e))
			require.ErrorIs(t, err, context.Canceled, "three attempts, and none counts")
			require.Equal(t, 3, failures)
			require.NoError(t, in.Close(t.Context()))
			require.NoError(t, other.Rollback(t.Context()))

			b.Config.HandlerTimeout = waitLimit
			require.NoError(t, b.Deliver(t, record(t, e, 1), c.handler))
			require.Equal(t, 1, b.Effects(t, e.ID))
			require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
		})
	}
}

func TestAReplayWhoseHandlerIsAlwaysLate(t *testing.T) {
	t.Parallel()
	for name, late := range lateHandlers {
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

func TestAnEventThatWaitsForAConnection(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]int{"alone": 1, "in a batch": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			busy, err := b.onOneConnection(t).Acquire(t.Context())
			require.NoError(t, err)
			defer busy.Release()
			impatient, stop := context.WithCancel(t.Context())
			var classes []failure.Class
			b.Config.HandlerTimeout, b.Config.MaxAttempts = 50*time.Millisecond, 1
			b.Host.OnFailure = func(_ context.Context, cause error) {
				if classes = append(classes, failure.Classify(cause)); len(classes) == 3 {
					stop()
				}
			}
			_, handle := b.handle(t, effect)
			_, err = handle(impatient, fromNowhere(impatient, events))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, []failure.Class{failure.Transient, failure.Transient, failure.Transient}, classes)
			require.Zero(t, b.counter(t, "inbox_messages_total", string(inbox.Dead)))
		})
	}
}

func fromNowhere(ctx context.Context, n int) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = newEvent().Message()
		msgs[i].SetContext(ctx)
	}
	return msgs
}
