package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestAConsumerIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(consumer("a", nil, nil, new([]asked))))
	ask := func(verb, consumer string, dryRun string) (int, []byte) {
		return b.call(t, "POST", "/admin/v1/consumers/"+verb,
			`{"by":"ada","reason":"mending","consumer":"`+consumer+`","dry_run":`+dryRun+`}`)
	}
	paused := func() map[string]inbox.Paused {
		found, err := inbox.ReadPaused(t.Context(), b.pool)
		require.NoError(t, err)
		return found
	}
	status, body := ask("pause", "b", "false")
	requireProblem(t, status, body, http.StatusNotFound, "consumer_not_found")
	status, body = ask("resume", "a", "false")
	requireProblem(t, status, body, http.StatusConflict, "consumer_not_paused")
	status, _ = ask("pause", "a", "true")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, paused())

	status, body = ask("pause", "a", "false")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"dry_run":false,"count":1,"failed":0}`, string(body))
	status, body = ask("pause", "a", "false")
	requireProblem(t, status, body, http.StatusConflict, "consumer_paused")
	stats := read[adminapi.InboxStats](t, b, "inbox/stats")
	require.Equal(t, "ada", stats.Items[0].Paused.By)
	require.Equal(t, "mending", stats.Items[0].Paused.Reason)

	status, _ = ask("resume", "a", "true")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, paused(), 1)
	status, _ = ask("resume", "a", "false")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, paused())
	actions := read[adminapi.Actions](t, b, "audit?kind=consumer")
	require.Len(t, actions.Items, 2)
	require.Equal(t, "pause a", actions.Items[0].Verb+" "+actions.Items[0].Subject)
	resumed := actions.Items[1]
	require.Equal(t, "resume a: paused by ada", resumed.Verb+" "+resumed.Subject+": "+resumed.Before)
}
