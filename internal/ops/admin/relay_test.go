package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

// The relay is paused once, under a name and for a reason; a dry run changes nothing.
func TestTheRelayIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := func(verb, dryRun string) (int, []byte) {
		return b.call(t, "POST", "/admin/v1/outbox/"+verb, `{"by":"ada","reason":"moving","dry_run":`+dryRun+`}`)
	}
	paused := func() *adminapi.RelayPause {
		_, body := b.call(t, "GET", "/admin/v1/outbox/status", "")
		var status adminapi.OutboxStatus
		require.NoError(t, json.Unmarshal(body, &status))
		return status.Paused
	}
	status, body := ask("resume", "false")
	requireProblem(t, status, body, http.StatusConflict, "relay_not_paused")
	status, _ = ask("pause", "true")
	require.Equal(t, http.StatusOK, status)
	require.Nil(t, paused())

	status, body = ask("pause", "false")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"dry_run":false,"count":1,"failed":0}`, string(body))
	require.Equal(t, "ada: moving", paused().By+": "+paused().Reason)
	status, body = ask("pause", "false")
	requireProblem(t, status, body, http.StatusConflict, "relay_paused")

	status, _ = ask("resume", "true")
	require.Equal(t, http.StatusOK, status)
	require.NotNil(t, paused())
	status, _ = ask("resume", "false")
	require.Equal(t, http.StatusOK, status)
	require.Nil(t, paused())
	_, body = b.call(t, "GET", "/admin/v1/audit?kind=outbox", "")
	var actions adminapi.Actions
	require.NoError(t, json.Unmarshal(body, &actions))
	require.Len(t, actions.Items, 2)
	require.Equal(t, "pause: running", actions.Items[0].Verb+": "+actions.Items[0].Before)
	require.Equal(t, "resume: paused by ada", actions.Items[1].Verb+": "+actions.Items[1].Before)
}
