package service_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

// However many ask, the service looks once in half a second; one who gave up takes nothing from the others.
func TestACauseIsWorkedOutOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
		admin.Explain(func(ctx context.Context) service.Cause {
			looks.Add(1)
			select {
			case <-time.After(100 * time.Millisecond):
				return service.Cause{Code: service.CodeAllWell}
			case <-ctx.Done():
				return service.Cause{Code: "cut short"}
			}
		})
		gone, leave := context.WithCancel(t.Context())
		leave()
		var all sync.WaitGroup
		for _, ctx := range []context.Context{gone, t.Context(), t.Context(), t.Context()} {
			all.Go(func() {
				found := admin.Cause(ctx)
				require.True(t, found.Well(), found.Code)
				require.False(t, found.At.IsZero())
			})
		}
		all.Wait()
		require.EqualValues(t, 1, looks.Load())
		time.Sleep(time.Second) //nolint:forbidigo // no time passes: the bubble's clock is not the machine's
		admin.Cause(t.Context())
		require.EqualValues(t, 2, looks.Load(), "an old answer is none")
	})
}

// One that does not find out in time says so, and when.
func TestACauseThatIsLateIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
		release := make(chan struct{})
		admin.Explain(func(context.Context) service.Cause { <-release; return service.Cause{Code: service.CodeAllWell} })
		found := admin.Cause(t.Context())
		require.Equal(t, service.CodeUnknown, found.Code)
		require.Contains(t, found.Sentence, "no answer within 3s")
		require.WithinDuration(t, time.Now(), found.At, 0)
		close(release)
	})
}

// The report says why the service waits beside its checks, and nothing where it does not explain itself or where one
// check alone was asked for.
func TestReadinessSaysTheCause(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
	admin.Check("a", func(context.Context) error { return nil })
	cause := func(query string) *service.Cause {
		answer := httptest.NewRecorder()
		admin.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz"+query, http.NoBody))
		require.Equal(t, http.StatusOK, answer.Code, "it waits, and is ready")
		var report service.Readiness
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &report))
		return report.Cause
	}
	require.Nil(t, cause(""))
	since := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	admin.Explain(func(context.Context) service.Cause {
		return service.Cause{Code: "keys_parked", Sentence: "1 key is parked:\nno room.", Since: since}
	})
	require.Equal(t, &service.Cause{Code: "keys_parked", Sentence: "1 key is parked: no room.", Since: since},
		cause(""))
	require.Nil(t, cause("?only=a"))
}
