package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	deadletters "example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type asked struct {
	filter  deadletters.Filter
	options inbox.Options
}

func consumer(name string, results []inbox.Result, err error, calls *[]asked) admin.Consumer {
	return admin.Consumer{
		Name: name,
		Replay: func(_ context.Context, f deadletters.Filter, o inbox.Options) error {
			*calls = append(*calls, asked{f, o})
			for _, r := range results {
				o.OnResult(r)
			}
			return err
		},
	}
}

var replayedOne = inbox.Result{Outcome: string(inbox.Applied)}

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
			consumer("a", []inbox.Result{
				replayedOne, {Outcome: "stale"}, {ID: 7, Outcome: "failed", Code: "handler_failed", Error: "dead letter 7: e"},
			}, nil, &calls),
			consumer("b", []inbox.Result{replayedOne, {ID: 9, Outcome: "refused", Code: "too_old", Error: "f"}}, nil, &calls),
		}
	})
	_, line := b.replay(t, `{"by":"ada","reason":"r","dry_run":false,"filter":{"key":"k"},"rate":2.5,"force":true,
		"accept_gap":true}`)
	require.EqualValues(t, 3, line.Result.Count)
	require.EqualValues(t, 2, line.Result.Failed)
	require.Equal(t, []adminapi.Failure{
		{Subject: "7", Code: "handler_failed", Detail: "dead letter test/7: e"}, {Subject: "9", Code: "too_old", Detail: "f"},
	}, line.Result.Errors)
	require.Contains(t, line.Result.Note, "follow automatically within 5 seconds")
	require.Len(t, calls, 2)
	want := deadletters.Filter{Consumer: "b", Key: "k", State: deadletters.Waiting}
	require.Equal(t, want, calls[1].filter, "each is asked for its own")
	require.InDelta(t, 2.5, calls[1].options.PerSecond, 0)
	require.True(t, calls[1].options.Force)
	require.True(t, calls[1].options.AcceptGap)
	require.Equal(t, "ada", calls[1].options.By)

	calls = nil
	_, line = b.replay(t, `{"by":"ada","reason":"r","dry_run":true,"all":true,"filter":{"limit":5}}`)
	require.Contains(t, line.Result.Note, "not tried")
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
			consumer("a", []inbox.Result{replayedOne}, errors.New("gone"), &calls),
			consumer("b", nil, nil, &calls),
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

func TestDeadLettersWithoutTheirConsumerAreNotReplayed(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, withConsumers(consumer("a", nil, nil, &calls)))
	b.file(t, filed{"gone", "", "permanent", "c", "waiting", "", 1},
		filed{"past", "", "permanent", "c", "discarded", "", 1})
	for filter, want := range map[string]int64{
		`{"consumer":"gone"}`: 1, `{"code":"c"}`: 1, `{"consumer":"past"}`: 0, `{"consumer":"a"}`: 0,
	} {
		status, line := b.replay(t, `{"by":"ada","reason":"r","dry_run":false,"filter":`+filter+`}`)
		require.Equal(t, http.StatusOK, status, "%s: a failure here must not keep the command from the next service", filter)
		require.Zero(t, line.Result.Count)
		require.Equal(t, want, line.Result.Failed, filter)
		require.Empty(t, line.Result.Note, filter)
		for _, failed := range line.Result.Errors {
			require.Equal(t, adminapi.Failure{
				Subject: "1", Code: "consumer_not_found", Detail: "this service has no consumer gone",
			}, failed)
		}
	}
}

func TestIDsThatDoNotWaitAreNamed(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, withConsumers(consumer("a", []inbox.Result{replayedOne}, nil, &calls)))
	b.file(t, filed{"a", "", "permanent", "c", "waiting", "", 1}, filed{"a", "", "permanent", "d", "replayed", "", 1})
	for _, change := range []string{"replay", "discard"} {
		_, content := b.operate(t, http.MethodPost, "/admin/v1/dead-letters/"+change,
			`{"by":"ada","reason":"r","dry_run":true,"filter":{"ids":[1,2,9]}}`)
		var line adminapi.Line
		require.NoError(t, json.Unmarshal(content, &line))
		require.EqualValues(t, 1, line.Result.Count)
		require.EqualValues(t, 2, line.Result.Failed)
		require.Equal(t, []adminapi.Failure{
			{Subject: "2", Code: "not_waiting", Detail: "it is replayed already"},
			{Subject: "9", Code: "not_found", Detail: "there is no such dead letter"},
		}, line.Result.Errors)
	}
}

func TestAReplayReportsWhatItDidNotTry(t *testing.T) {
	t.Parallel()
	var calls []asked
	b := setup(t, withConsumers(consumer("a", []inbox.Result{{ID: 1, Code: "handler_failed"}}, nil, &calls)))
	b.file(t, filed{"a", "", "permanent", "c", "waiting", "", 1}, filed{"gone", "", "permanent", "c", "waiting", "", 1})
	for filter, want := range map[string]string{`{}`: "1 more wait. They were not tried", `{"limit":1}`: ""} {
		_, line := b.replay(t, `{"by":"ada","reason":"r","dry_run":false,"all":true,"filter":`+filter+`}`)
		require.EqualValues(t, 1, line.Result.Failed)
		require.Contains(t, line.Result.Note, want)
		require.Equal(t, want == "", line.Result.Note == "", filter)
	}
}

func TestALongReplayIsHeardOf(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	b := setup(t, func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{{
			Name: "a",
			Replay: func(ctx context.Context, _ deadletters.Filter, o inbox.Options) error {
				o.OnResult(inbox.Result{ID: 7, Outcome: "failed", Code: "handler_failed"})
				select {
				case <-heard:
					o.OnResult(replayedOne)
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}}
	})
	service, err := client.New("test", b.server.URL, token)
	require.NoError(t, err)
	var first sync.Once
	result, err := client.Stream(t.Context(), service, func(done, _ int64) {
		first.Do(func() {
			require.Zero(t, done, "a failure is not done")
			close(heard)
		})
	}, client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{By: "ada", Reason: "r", All: true}))
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Count)
}

func TestMoreFailuresThanAreListed(t *testing.T) {
	t.Parallel()
	var calls []asked
	failures := make([]inbox.Result, 250)
	for i := range failures {
		failures[i] = inbox.Result{ID: int64(i), Outcome: "refused", Code: "version_gap"}
	}
	b := setup(t, withConsumers(consumer("a", failures, nil, &calls)))
	_, line := b.replay(t, `{"by":"ada","reason":"r","dry_run":true,"all":true,"filter":{}}`)
	require.EqualValues(t, 250, line.Result.Failed)
	require.Len(t, line.Result.Errors, 100)
	require.Empty(t, line.Result.Note, "no dead letter would be tried")
}
