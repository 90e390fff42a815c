package inbox_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/testkit"
)

func TestProcessAfterALostCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var once atomic.Bool
	b.severing(t, func(answer []byte) bool { return isCommitted(answer) && once.CompareAndSwap(false, true) })
	in := b.Inbox(t)
	outcome, err := in.Process(t.Context(), "id-1", b.Note("id-1"))
	require.Error(t, err)
	require.Equal(t, inbox.Failed, outcome)
	outcome, err = in.Process(t.Context(), "id-1", b.Note("id-1"))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, outcome)
	require.Equal(t, 1, b.Effects(t, "id-1"))
}

// If the first delivery rolls back, the duplicate runs.
func TestATwinWaitsForTheFirstToEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	inside, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := in.Process(context.WithoutCancel(t.Context()), "id-1", func(context.Context, pgx.Tx) error {
			close(inside)
			<-release
			return errors.New("rolled back in the end")
		})
		first <- err
	}()
	<-inside
	second := make(chan inbox.Outcome, 1)
	go func() {
		outcome, err := in.Process(context.WithoutCancel(t.Context()), "id-1", b.Note("id-1"))
		if err == nil {
			second <- outcome
		}
	}()
	testkit.Until(t, func() bool {
		return b.Count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	}, "the twin never waited")
	close(release)
	require.Error(t, <-first)
	require.Equal(t, inbox.Applied, <-second)
	require.Equal(t, 1, b.Effects(t, "id-1"))
}

func TestProcessRefusesAnIDItCouldNotRemember(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	for name, id := range map[string]string{
		"empty": "", "too long": strings.Repeat("x", 256), "NUL": "a\x00", "not UTF-8": "\xff",
	} {
		outcome, err := in.Process(t.Context(), id, func(context.Context, pgx.Tx) error {
			t.Error("ran")
			return nil
		})
		var decodeErr *event.ContractError
		require.ErrorAs(t, err, &decodeErr, name)
		require.Equal(t, inbox.Failed, outcome)
	}
	nothing := func(context.Context, pgx.Tx) error { return nil }
	outcome, err := in.Process(t.Context(), strings.Repeat("日", 255), nothing)
	require.NoError(t, err)
	require.Equal(t, inbox.Applied, outcome, "255 characters of any script fit")
}

func TestIsProcessedAndMarkProcessed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		processed, err := in.IsProcessed(t.Context(), tx, "id-1")
		require.NoError(t, err)
		require.False(t, processed)
		outcome, err := in.MarkProcessed(t.Context(), tx, "id-1")
		require.NoError(t, err)
		require.Equal(t, inbox.Applied, outcome)
		outcome, err = in.MarkProcessed(t.Context(), tx, "id-1")
		require.NoError(t, err)
		require.Equal(t, inbox.Duplicate, outcome)
		processed, err = in.IsProcessed(t.Context(), tx, "id-1")
		require.NoError(t, err)
		require.True(t, processed)
		_, err = in.MarkProcessed(t.Context(), tx, "")
		require.Error(t, err)
		return nil
	})
	require.NoError(t, err)
	outcome, err := in.Process(t.Context(), "id-1", b.Note("id-1"))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, outcome)
}

func TestNewReportsAMistake(t *testing.T) {
	t.Parallel()
	pool := setup(t).Pool
	for want, cfg := range map[string]inbox.Config{
		"consumer":      {Pool: pool},
		"pool":          {Consumer: "test"},
		"order":         {Consumer: "test", Pool: pool, Order: "loose"},
		"conflict mode": {Consumer: "test", Pool: pool, OnConflict: "shrug"},
		"positive":      {Consumer: "test", Pool: pool, MaxAttempts: -1},
		"shorter":       {Consumer: "test", Pool: pool, RetryMin: 2, RetryMax: 1},
	} {
		_, err := inbox.New(cfg)
		require.ErrorContains(t, err, want)
	}
}
