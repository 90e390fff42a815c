package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

var everyOutcome = []inbox.Outcome{
	inbox.Applied, inbox.Duplicate, inbox.Conflict, inbox.Stale, inbox.Gap, inbox.Parked, inbox.Expired, inbox.Ignored,
	inbox.Dead, inbox.Failed,
}

func TestADeliveryThatIsBrokenOffHasFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told := b.listen()
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("partition lost")
	msg := record(t, newEvent(), 1)
	origin, _ := event.OriginFrom(msg.Context())
	msg.SetContext(event.WithOrigin(ctx, origin))
	err := b.Deliver(t, msg, func(ctx context.Context, _ pgx.Tx, _ event.Event, _ testData) error {
		cancel(lost)
		return ctx.Err()
	})
	require.ErrorIs(t, err, lost)
	told.require(t, b, []inbox.Outcome{inbox.Failed})
	require.Zero(t, b.Count(t, `select count(*) from inbox`))
}

type told struct {
	slog.Handler

	mu       sync.Mutex
	outcomes []inbox.Outcome
}

func (b *bundle) listen() *told {
	heard := &told{Handler: slog.DiscardHandler}
	b.Config.Log = slog.New(heard)
	return heard
}

func (*told) Enabled(context.Context, slog.Level) bool { return true }

func (t *told) WithAttrs([]slog.Attr) slog.Handler { return t }

func (t *told) Handle(_ context.Context, line slog.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	line.Attrs(func(a slog.Attr) bool {
		if outcome, ok := a.Value.Any().(inbox.Outcome); ok {
			t.outcomes = append(t.outcomes, outcome)
		}
		return true
	})
	return nil
}

func (t *told) require(tb testing.TB, b *bundle, outcomes []inbox.Outcome) {
	tb.Helper()
	require.Equal(tb, outcomes, t.outcomes, "a line each")
	for _, outcome := range everyOutcome {
		n := 0
		for _, o := range outcomes {
			if o == outcome {
				n++
			}
		}
		require.Equal(tb, n, b.counter(tb, "inbox_messages_total", string(outcome)), outcome)
	}
}
