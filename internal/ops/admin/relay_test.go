package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestTheRelayIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := func(verb, dryRun string) (int, []byte) {
		return b.call(t, "POST", "/admin/v1/outbox/"+verb, `{"by":"ada","reason":"moving","dry_run":`+dryRun+`}`)
	}
	paused := func() *adminapi.RelayPause {
		return read[adminapi.OutboxStatus](t, b, "outbox/status").Paused
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
	actions := read[adminapi.Actions](t, b, "audit?kind=outbox")
	require.Len(t, actions.Items, 2)
	require.Equal(t, "pause: running", actions.Items[0].Verb+": "+actions.Items[0].Before)
	require.Equal(t, "resume: paused by ada", actions.Items[1].Verb+": "+actions.Items[1].Before)
}

func TestARefusalIsConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	confirm := func(code, dryRun string) (int, []byte) {
		return b.call(t, "POST", "/admin/v1/outbox/confirm",
			`{"by":"ada","reason":"restored","dry_run":`+dryRun+`,"code":"`+code+`"}`)
	}
	refused := func() *adminapi.RelayRefusal {
		return read[adminapi.OutboxStatus](t, b, "outbox/status").Refused
	}
	status, body := confirm("events_unknown", "false")
	requireProblem(t, status, body, http.StatusNotFound, "relay_not_refused")
	require.Nil(t, refused())
	b.exec(t, `update outbox_cursor set refused = 'events_unknown: 2 records have no row here.'`)
	require.Equal(t, &adminapi.RelayRefusal{Code: "events_unknown", Text: "2 records have no row here."}, refused())

	status, body = confirm("log_unplaceable", "false")
	requireProblem(t, status, body, http.StatusConflict, "other_refusal")
	const note = `"note":"events_unknown: 2 records have no row here. ` +
		`Mails that this database forgot to have sent go out again."`
	for _, dryRun := range []string{"true", "false"} {
		require.False(t, refused().Confirmed)
		status, body = confirm("events_unknown", dryRun)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"dry_run":`+dryRun+`,"count":1,"failed":0,`+note+`}`, string(body))
	}
	require.True(t, refused().Confirmed)

	actions := read[adminapi.Actions](t, b, "audit?kind=outbox&subject=events_unknown")
	require.Len(t, actions.Items, 1)
	done := actions.Items[0]
	require.Equal(t, []string{"ada", "confirm", "restored", "events_unknown: 2 records have no row here.", "confirmed"},
		[]string{done.By, done.Verb, done.Reason, done.Before, done.After})
}

func TestLostEventsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 5 {
		b.exec(t, `insert into outbox_lost (topic, partition, "offset", event_id, event_type, key,
			version, headers, payload, appended_at) values ('users', 0, $1, $2, 'renamed', $3, 1, '{"ce_id":"x"}', '{"n":1}',
			now())`, n, fmt.Sprint("e", n), []string{"even", "odd"}[n%2])
	}
	var ids []string
	page := adminapi.LostEvents{Next: "first"}
	for query := "limit=2"; page.Next != ""; query = "limit=2&after=" + page.Next {
		page = read[adminapi.LostEvents](t, b, "outbox/lost?"+query)
		for _, e := range page.Items {
			ids = append(ids, e.EventID)
			require.Nil(t, e.Payload)
			require.JSONEq(t, `{"ce_id":"x"}`, string(e.Headers))
		}
	}
	require.Equal(t, []string{"e0", "e1", "e2", "e3", "e4"}, ids)
	odd := read[adminapi.LostEvents](t, b, "outbox/lost?topic=users&key=odd&payload=true").Items
	require.Len(t, odd, 2)
	require.JSONEq(t, `{"n":1}`, string(odd[0].Payload))
	b.refuses(t, "GET", "outbox/lost?after=users", "", http.StatusBadRequest, "invalid_parameter")
}

func TestParkedKeysAreCountedBeyondTheList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `
insert into outbox_parked (topic, key, reason, permanent)
select 't', n::text, 'too large', true from generate_series(1, 1001) n`)
	status := read[adminapi.OutboxStatus](t, b, "outbox/status")
	require.EqualValues(t, 1001, status.ParkedKeys)
	require.Len(t, status.Parked, 1000)
}
