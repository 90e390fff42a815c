package service_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

var quiet = slog.New(slog.DiscardHandler)

type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func (j *journal) task(name string, drain time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		j.note(name + " told")
		<-time.After(drain)
		j.note(name + " done")
		return ctx.Err()
	}
}

func TestGroup_StopsInReverseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		group := service.NewGroup(ctx, quiet, time.Minute)
		var notes journal
		group.OnStop("pool", func() error { notes.note("pool closed"); return nil })
		group.Go("relay", notes.task("relay", time.Second))
		group.Go("http", notes.task("http", 2*time.Second))
		cancel()
		require.NoError(t, group.Wait())
		require.Equal(t, []string{"http told", "http done", "relay told", "relay done", "pool closed"}, notes.all())
	})
}

func TestGroup_FirstFailureStopsTheRest(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	cases := map[string]struct {
		run  func(ctx context.Context) error
		want error
		text string
	}{
		"error": {func(context.Context) error { return boom }, boom, "relay: boom"},
		"panic": {func(context.Context) error { panic(boom) }, nil, "relay: panic: boom"},
		"ended early": {
			func(context.Context) error { return nil }, nil, "relay: ended before it was asked to",
		},
		"cancelled, but not by us": {
			func(context.Context) error { return context.Canceled }, context.Canceled, "relay: context canceled",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				group := service.NewGroup(t.Context(), quiet, time.Minute)
				var notes journal
				group.Go("other", notes.task("other", time.Second))
				group.Go("relay", c.run)
				err := group.Wait()
				require.True(t, c.want == nil || errors.Is(err, c.want))
				require.EqualError(t, err, c.text)
				require.Equal(t, []string{"other told", "other done"}, notes.all())
			})
		})
	}
}

func TestGroup_KeepsEveryError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		group := service.NewGroup(t.Context(), quiet, time.Minute)
		group.OnStop("pool", func() error { return second })
		group.Go("relay", func(context.Context) error { return first })
		err := group.Wait()
		require.ErrorIs(t, err, first)
		require.ErrorIs(t, err, second)
	})
}

func TestGroup_NamesWhatStillRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		group := service.NewGroup(ctx, quiet, 0)
		release := make(chan struct{})
		stuck := func(context.Context) error { <-release; return nil }
		group.Go("pool", func(ctx context.Context) error { <-ctx.Done(); return nil })
		group.Go("sender", stuck)
		group.Go("consumer", stuck)
		began := time.Now()
		cancel()
		err := group.Wait()
		require.EqualError(t, err, "stop: still running after 20s: sender, consumer",
			"the pool was stopped in the last grace")
		require.Equal(t, 21*time.Second, time.Since(began), "the drain timeout and the last grace")
		close(release)
	})
}

func TestGroup_LateTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		group := service.NewGroup(ctx, quiet, 0)
		cancel()
		require.NoError(t, group.Wait())
		var notes journal
		group.Go("late", func(context.Context) error { notes.note("ran"); return nil })
		synctest.Wait()
		require.Empty(t, notes.all(), "it would never be stopped")
	})
}
