package inbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestAPauseBeginsOnceAndEndsOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.Inbox)
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
