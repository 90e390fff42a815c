package inbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/testkit"
)

func TestAPauseBeginsOnceAndEndsOnce(t *testing.T) {
	t.Parallel()
	db := setup(t).Pool
	change := func(do func(tx pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), db, do) }
	stop := func(by string) error {
		return change(func(tx pgx.Tx) error { return inbox.PauseConsumer(t.Context(), tx, "c1", by, "the disk is full") })
	}
	var ended inbox.Paused
	resume := func() error {
		return change(func(tx pgx.Tx) (err error) {
			ended, err = inbox.ResumeConsumer(t.Context(), tx, "c1")
			return err
		})
	}
	require.ErrorIs(t, resume(), inbox.ErrNotPaused)
	require.NoError(t, stop("ada"))
	require.ErrorIs(t, stop("grace"), inbox.ErrPaused)
	paused, err := inbox.ReadPaused(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, paused, 1)
	require.Equal(t, "ada", paused["c1"].By)
	require.Equal(t, "the disk is full", paused["c1"].Reason)
	require.False(t, paused["c1"].Since.IsZero())
	require.NoError(t, resume())
	require.Equal(t, paused["c1"], ended)
	paused, err = inbox.ReadPaused(t.Context(), db)
	require.NoError(t, err)
	require.Empty(t, paused)
}

func TestAPausedConsumerBeginsNoAttempt(t *testing.T) {
	t.Parallel()
	var paused, waits atomic.Bool
	c, a := newParked(t, nil)
	c.Host.Resumed = func(ctx context.Context) error {
		for paused.Load() {
			waits.Store(true)
			_ = failure.Sleep(ctx, time.Millisecond)
		}
		return nil
	}
	for name, run := range map[string]func() error{
		"the rest of a batch that failed": func() error {
			msgs := c.records(t, sick("b", 1, "bad"), v("c", 1), v("d", 1))
			_, err := c.in.BatchMiddleware(func(m *message.Message) ([]*message.Message, error) {
				paused.Store(!waits.Load())
				return c.handler(m)
			})(t.Context(), msgs)
			return err
		},
		"a parked event": func() error {
			paused.Store(true)
			return c.replayer.ResumeRound(t.Context())
		},
	} {
		waits.Store(false)
		c.sick.Store(&map[string]error{"bad": inbox.Permanent(errSick)})
		before := c.Count(t, `select count(*) from ledger`)
		var ended errgroup.Group
		ended.Go(run)
		testkit.Until(t, waits.Load, name)
		require.Equal(t, before, c.Count(t, `select count(*) from ledger`), name)
		c.heal()
		paused.Store(false)
		require.NoError(t, ended.Wait(), name)
		require.Less(t, before, c.Count(t, `select count(*) from ledger`), name)
	}
	require.Subset(t, c.List(t, `select event_id from ledger`), ids(a...))
}
