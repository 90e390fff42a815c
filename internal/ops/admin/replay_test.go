package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	deadletters "example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// asked is what a consumer was asked to replay.
type asked struct {
	filter  deadletters.Filter
	options replay.Options
}

// consumer answers every replay with the report, and remembers what it was asked.
func consumer(name string, report replay.Report, err error, calls *[]asked) admin.Consumer {
	return admin.Consumer{
		Name: name,
		Replay: func(_ context.Context, f deadletters.Filter, o replay.Options) (replay.Report, error) {
			*calls = append(*calls, asked{f, o})
			return report, err
		},
	}
}

func (b *bundle) replay(t *testing.T, body string) (int, adminapi.Line) {
	t.Helper()
	status, content := b.operate(t, http.MethodPost, "/admin/v1/dead-letters/replay", body)
	var line adminapi.Line
	require.NoError(t, json.Unmarshal(content, &line), string(content))
	return status, line
}

func TestReplaySumsTheConsumersUp(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{
			consumer("a", replay.Report{Matched: 3, Applied: 1, Stale: 1, Failed: 1, Problems: []replay.Result{
				{ID: 7, Code: "handler_failed", Error: "e"},
			}}, nil, &calls),
			consumer("b", replay.Report{Matched: 2, Duplicate: 1, Refused: 1}, nil, &calls),
		}
	})
	_, line := b.replay(t, `{"by":"ada","reason":"r","dry_run":false,"filter":{"key":"k"},"rate":2.5,"force":true,
		"accept_gap":true}`)
	require.EqualValues(t, 3, line.Result.Count)
	require.EqualValues(t, 2, line.Result.Failed)
	require.Equal(t, []adminapi.Failure{{Subject: "7", Code: "handler_failed", Detail: "e"}}, line.Result.Errors)
	require.Len(t, calls, 2)
	require.Equal(t, deadletters.Filter{Consumer: "b", Key: "k"}, calls[1].filter, "each is asked for its own")
	require.Same(t, calls[0].options.Pace, calls[1].options.Pace, "the rate is the whole's")
	require.True(t, calls[1].options.Force)
	require.True(t, calls[1].options.AcceptGap)
	require.Equal(t, "ada", calls[1].options.By)

	calls = nil
	b.replay(t, `{"by":"ada","reason":"r","dry_run":true,"all":true,"filter":{"limit":5}}`)
	require.Equal(t, []int{5, 2}, []int{calls[0].filter.Limit, calls[1].filter.Limit}, "a limit is the whole's")
	require.True(t, calls[0].options.DryRun)
	calls = nil
	b.replay(t, `{"by":"ada","reason":"r","dry_run":true,"all":true,"filter":{"limit":3}}`)
	require.Len(t, calls, 1, "nothing is left for the second one")
	calls = nil
	b.replay(t, `{"by":"ada","reason":"r","dry_run":true,"filter":{"consumer":"b"}}`)
	require.Len(t, calls, 1)
	require.Equal(t, "b", calls[0].filter.Consumer)
}

func TestAReplayThatEndsEarlySaysSo(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{
			consumer("a", replay.Report{Matched: 1, Applied: 1}, errors.New("gone"), &calls),
			consumer("b", replay.Report{}, nil, &calls),
		}
	})
	status, content := b.call(t, http.MethodPost, "/admin/v1/dead-letters/replay",
		`{"by":"ada","reason":"r","dry_run":false,"all":true,"filter":{}}`)
	require.Equal(t, http.StatusOK, status)
	told := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.GreaterOrEqual(t, len(told), 2)
	require.JSONEq(t, `{"done":1}`, told[len(told)-2], "what was done stays done and is said")
	require.Contains(t, told[len(told)-1], `"code":"internal"`)
	require.Len(t, calls, 1, "the next consumer is not asked")

	status, content = b.call(t, http.MethodPost, "/admin/v1/dead-letters/replay",
		`{"by":"ada","reason":"r","dry_run":false,"all":true,"filter":{},"rate":-1}`)
	requireProblem(t, status, content, http.StatusUnprocessableEntity, "invalid_value")
}

// A replay whose handler says nothing for long is heard of all the same: no client takes the service for dead.
func TestALongReplayIsHeardOf(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{{
			Name: "a",
			Replay: func(ctx context.Context, _ deadletters.Filter, _ replay.Options) (replay.Report, error) {
				select {
				case <-heard:
					return replay.Report{Matched: 1, Applied: 1}, nil
				case <-ctx.Done():
					return replay.Report{}, ctx.Err()
				}
			},
		}}
	})
	service, err := client.New("test", b.server.URL, token)
	require.NoError(t, err)
	var first sync.Once
	result, err := client.Stream(t.Context(), service, func(done int64) {
		require.Zero(t, done)
		first.Do(func() { close(heard) })
	}, client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{By: "ada", Reason: "r", All: true}))
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Count)
}

// The rate is the whole's: a consumer's first letter does not follow at once on another's last.
func TestTheRateHoldsBetweenConsumers(t *testing.T) {
	t.Parallel()
	const rate, every = 4, 250 * time.Millisecond
	var asked, began []time.Time
	one := func(ctx context.Context, _ deadletters.Filter, o replay.Options) (replay.Report, error) {
		asked = append(asked, time.Now())
		err := o.Pace.Await(ctx)
		began = append(began, time.Now())
		return replay.Report{Matched: 1, Applied: 1}, err
	}
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{{Name: "a", Replay: one}, {Name: "b", Replay: one}}
	})
	_, content := b.call(t, http.MethodPost, "/admin/v1/dead-letters/replay",
		fmt.Sprintf(`{"by":"ada","reason":"r","dry_run":false,"all":true,"filter":{},"rate":%d}`, rate))
	require.Contains(t, string(content), `"count":2`)
	require.GreaterOrEqual(t, began[1].Sub(asked[0]), every, "however late the first one hears that it may begin")
}
