package pause_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/pause"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestAPauseIsSaidOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.Inbox)
	change := func(do func(tx pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), db, do) }
	stop := func(by string) error {
		return change(func(tx pgx.Tx) error { return pause.Pause(t.Context(), tx, "c1", by, "the disk is full") })
	}
	var ended pause.Paused
	resume := func() error {
		return change(func(tx pgx.Tx) (err error) {
			ended, err = pause.Resume(t.Context(), tx, "c1")
			return err
		})
	}
	require.ErrorIs(t, resume(), pause.ErrNotPaused)
	require.NoError(t, stop("ada"))
	require.ErrorIs(t, stop("grace"), pause.ErrPaused)
	paused, err := pause.Read(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, paused, 1)
	require.Equal(t, "ada", paused["c1"].By)
	require.Equal(t, "the disk is full", paused["c1"].Reason)
	require.False(t, paused["c1"].Since.IsZero())
	require.NoError(t, resume())
	require.Equal(t, paused["c1"], ended)
	paused, err = pause.Read(t.Context(), db)
	require.NoError(t, err)
	require.Empty(t, paused)
}

// database says which consumers are paused.
type database struct {
	mu     sync.Mutex
	paused map[string]pause.Paused
	err    error
}

func (d *database) say(paused map[string]pause.Paused, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused, d.err = paused, err
}

func (d *database) read(context.Context) (map[string]pause.Paused, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.paused, d.err
}

// A gate is shut until it is known that its consumer is not paused, stays as it was while that cannot be asked, and
// follows what is said within the interval, or at once when it is told to look.
func TestAGateFollowsWhatIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var table database
		table.say(nil, errors.New("the database is away"))
		var failures atomic.Int64
		gates := pause.NewGates(table.read, time.Second, func(error) { failures.Add(1) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = gates.Run(ctx)
		}()
		synctest.Wait()
		require.False(t, gates.IsOpen("c1"), "not read yet")
		require.EqualValues(t, 1, failures.Load())
		waited := make(chan error, 1)
		go func() { waited <- gates.Wait(ctx, "c1") }()
		table.say(nil, nil)
		time.Sleep(time.Second) //nolint:forbidigo // no time passes: the bubble's clock is not the machine's
		require.NoError(t, <-waited)
		require.True(t, gates.IsOpen("c2"))

		c1 := map[string]pause.Paused{"c1": {}}
		table.say(c1, nil)
		gates.Look()
		synctest.Wait()
		require.False(t, gates.IsOpen("c1"), "without waiting for the second to end")
		require.True(t, gates.IsOpen("c2"))
		table.say(c1, errors.New("away again"))
		time.Sleep(2 * time.Second) //nolint:forbidigo // likewise
		synctest.Wait()
		require.False(t, gates.IsOpen("c1"))
		require.True(t, gates.IsOpen("c2"), "what is not known stays as it was")
		go func() { waited <- gates.Wait(ctx, "c1") }()
		stop()
		require.ErrorIs(t, <-waited, context.Canceled)
		<-done
	})
}
