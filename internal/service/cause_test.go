package service_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

func TestACauseIsWorkedOutOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
		admin.Explain(func(context.Context) ([]service.Cause, error) {
			looks.Add(1)
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // no time passes: the bubble's clock is not the machine's
			return nil, nil
		})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { require.Empty(t, admin.Causes()) })
		}
		all.Wait()
		require.EqualValues(t, 1, looks.Load())
		time.Sleep(time.Second) //nolint:forbidigo // no time passes: the bubble's clock is not the machine's
		admin.Causes()
		require.EqualValues(t, 2, looks.Load(), "an old answer is none")
	})
}

func TestACauseThatIsLateIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
		release := make(chan struct{})
		admin.Explain(func(context.Context) ([]service.Cause, error) { <-release; return nil, nil })
		found := admin.Causes()
		require.Len(t, found, 1)
		require.Equal(t, service.CodeUnknown, found[0].Code)
		require.Contains(t, found[0].Details, "no answer within 2s")
		close(release)
	})
}

func TestReadinessListsTheCauses(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
	admin.Check("a", func(context.Context) error { return nil })
	report := func(query string) (members map[string]json.RawMessage) {
		answer := get(t, admin, "/readyz"+query)
		require.Equal(t, http.StatusOK, answer.Code, "it waits, and is ready")
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &members))
		return members
	}
	require.NotContains(t, report(""), "causes")
	var causes []service.Cause
	admin.Explain(func(context.Context) ([]service.Cause, error) { return causes, nil })
	causes = []service.Cause{{Code: "keys_parked", What: "1 key is parked.", Means: "m", Do: "d", Stops: true}}
	require.JSONEq(t, `[{"code":"keys_parked","what":"1 key is parked.","means":"m","do":"d","stops":true}]`,
		string(report("")["causes"]))
	require.NotContains(t, report("?only=a"), "causes")
	well := service.NewAdmin(service.AdminConfig{Log: slog.New(slog.DiscardHandler)})
	well.Explain(func(context.Context) ([]service.Cause, error) { return nil, nil })
	require.Equal(t, []service.Cause{}, well.Readiness().Causes)
}
