package inbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/inbox"
)

// Leaving a partition in good order leaves no suspicion; ending without does, for as many events as were under way.
func TestSuspicionLastsAsLongAsItMust(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Batch = 2
	events := versions("key-1", 1, 2, 3, 4, 5, 6)()
	written := func(handler *int) handlerFunc {
		return func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
			*handler += b.count(t, `select count(*) from inbox_attempt`)
			return effect(ctx, tx, e, data)
		}
	}
	counted := 0
	first, handle := b.handle(t, written(&counted))
	_, err := handle(t.Context(), records(t, t.Context(), events[0]))
	require.NoError(t, err)
	require.NoError(t, first.Leave(t.Context(), "topic-1", 2))
	_, handle = b.handle(t, written(&counted))
	_, err = handle(t.Context(), records(t, t.Context(), events[:2]...))
	require.NoError(t, err)
	require.Zero(t, counted, "nobody is suspected after a clean end")

	_, handle = b.handle(t, written(&counted)) // the last one did not leave
	_, err = handle(t.Context(), records(t, t.Context(), events...))
	require.NoError(t, err)
	require.Equal(t, 2, counted, "the two that may have been under way, not the processed ones, not the later ones")
	require.Zero(t, b.count(t, `select count(*) from inbox_attempt`))
	require.Equal(t, 6, b.count(t, `select count(*) from ledger`))
}

// A partition that is left with work under way is no clean end, even when the process that left it ends cleanly.
func TestAnAbandonedPartitionStaysSuspicious(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Batch = 1
	in, handle := b.handle(t, effect)
	_, err := handle(t.Context(), records(t, t.Context(), v("key-1", 1)))
	require.NoError(t, err)
	in.Abandon("topic-1", 2)
	require.NoError(t, in.Close(t.Context()))
	require.Equal(t, 1, b.count(t, `select in_flight from inbox_owner`))
	_, err = handle(t.Context(), records(t, t.Context(), v("key-1", 2)))
	require.NoError(t, err, "the same process may get it back")
	require.NoError(t, in.Close(t.Context()))
	require.Zero(t, b.count(t, `select count(*) from inbox_owner`))
}

// A suspect whose handling is broken off, as often as it may be, has ended no process.
func TestAnAttemptThatIsBrokenOffIsNoDeath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.MaxAttempts = 1
	e := newEvent()
	b.exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'somebody who died', 5)`)
	in, stops := b.inbox(t), 0
	mux := inbox.NewMux()
	var stop context.CancelFunc
	inbox.Handle(mux, testType, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		if stops < 3 {
			stops++
			stop()
			return ctx.Err()
		}
		return effect(ctx, tx, e, data)
	})
	for range 3 {
		msg := record(t, e, 1)
		ctx, cancel := context.WithCancel(msg.Context())
		stop = cancel
		msg.SetContext(ctx)
		require.ErrorIs(t, deliver(in, mux, msg), context.Canceled)
		require.Zero(t, b.count(t, `select count(*) from inbox_attempt`), "who handles it next may not suspect it")
	}
	require.NoError(t, deliver(in, mux, record(t, e, 1)))
	require.Equal(t, 1, b.effects(t, e.ID))
	require.Zero(t, b.count(t, `select count(*) from inbox_attempt`))
}
