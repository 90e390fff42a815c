package local

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParentThatEnds(t *testing.T) {
	t.Parallel()
	var parent atomic.Int64
	parent.Store(7)
	ctx, stop := withParent(t.Context(), func() int { return int(parent.Load()) }, time.Millisecond)
	defer stop()
	require.NoError(t, ctx.Err())
	parent.Store(1)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), errOrphaned)
}

func TestParentThatStays(t *testing.T) {
	t.Parallel()
	ctx, stop := withParent(t.Context(), func() int { return 7 }, time.Millisecond)
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80",
		"[::]:80": "127.0.0.1:80", "host:80": "host:80", "nonsense": "nonsense",
	} {
		require.Equal(t, want, Reachable(addr), addr)
	}
}

func TestFailedChecks(t *testing.T) {
	t.Parallel()
	report := "not_ready\n  ok       database \n  failed   relay no leader yet\n  failed   broker away\n"
	require.Equal(t, "relay no leader yet, broker away", failedChecks(report))
}

func TestLogBeginsAnewWhenItIsLarge(t *testing.T) {
	t.Parallel()
	f, err := openFolder(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, f.lock.Unlock()) }()
	require.NoError(t, os.WriteFile(f.file("x.log"), nil, 0o600))
	require.NoError(t, os.Truncate(f.file("x.log"), maxLogBytes+1))
	logs := &logs{folder: f}
	_, err = logs.open("x")
	require.NoError(t, err)
	require.NoError(t, logs.close())
	old, err := os.Stat(f.file("x.log.old"))
	require.NoError(t, err)
	require.EqualValues(t, maxLogBytes+1, old.Size())
	fresh, err := os.Stat(f.file("x.log"))
	require.NoError(t, err)
	require.Zero(t, fresh.Size())
}
