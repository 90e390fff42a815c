package failure_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	backoff := failure.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	different := false
	for _, want := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
		want *= time.Millisecond
		got := backoff.Next()
		require.InDelta(t, want, got, float64(want)/5)
		different = different || got != want
	}
	require.True(t, different, "callers that failed together retry together")
	require.True(t, backoff.Began())
	backoff.Reset()
	require.False(t, backoff.Began())
	require.InDelta(t, 100*time.Millisecond, backoff.Next(), float64(20*time.Millisecond))
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	require.NoError(t, failure.Sleep(t.Context(), time.Nanosecond))
	ctx, stop := context.WithCancelCause(t.Context())
	stop(io.EOF)
	require.ErrorIs(t, failure.Sleep(ctx, time.Hour), io.EOF)
}
