package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestPausesBeginAndEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, withConsumers(consumer("a", nil, nil, new([]asked))))
	for path, c := range map[string]struct{ kind, subject, code, members string }{
		"consumers/": {"consumer", "a", "consumer", `,"consumer":"a"`}, "outbox/": {"outbox", "", "relay", ""},
	} {
		paused := func() (who string) {
			if p := read[adminapi.OutboxStatus](t, b, "outbox/status").Paused; p != nil {
				who += p.By + ": " + p.Reason
			}
			if p := read[adminapi.InboxStats](t, b, "inbox/stats").Items[0].Paused; p != nil {
				who += p.By + ": " + p.Reason
			}
			return who
		}
		done := func(verb string, dryRun bool) {
			status, body := b.change(t, path+verb, dryRun, c.members)
			require.Equal(t, http.StatusOK, status, string(body))
			require.JSONEq(t, fmt.Sprintf(`{"dry_run":%t,"count":1,"failed":0}`, dryRun), string(body))
		}
		refused := func(verb, code string) {
			status, body := b.change(t, path+verb, false, c.members)
			requireProblem(t, status, body, http.StatusConflict, code)
		}
		refused("resume", c.code+"_not_paused")
		done("pause", true)
		require.Empty(t, paused())
		done("pause", false)
		require.Equal(t, "ada: r", paused())
		refused("pause", c.code+"_paused")
		done("resume", true)
		require.Equal(t, "ada: r", paused())
		done("resume", false)
		require.Empty(t, paused())
		var actions []string
		for _, a := range read[adminapi.Actions](t, b, "audit", adminapi.AuditQuery{Kind: c.kind}).Items {
			actions = append(actions, a.Verb+" "+a.Subject+": "+a.Before)
		}
		require.Equal(t, []string{"pause " + c.subject + ": running", "resume " + c.subject + ": paused by ada"}, actions)
	}
	status, body := b.change(t, "consumers/pause", false, `,"consumer":"b"`)
	requireProblem(t, status, body, http.StatusNotFound, "consumer_not_found")
}

func TestARefusalIsConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	confirm := func(code string, dryRun bool) (int, []byte) {
		return b.change(t, "outbox/confirm", dryRun, `,"code":"`+code+`"`)
	}
	refused := func() *adminapi.RelayRefusal {
		return read[adminapi.OutboxStatus](t, b, "outbox/status").Refused
	}
	status, body := confirm("events_unknown", false)
	requireProblem(t, status, body, http.StatusNotFound, "relay_not_refused")
	require.Nil(t, refused())
	b.exec(t, `update outbox_cursor set refused = 'events_unknown: 2 records have no row here.'`)
	require.Equal(t, &adminapi.RelayRefusal{Code: "events_unknown", Text: "2 records have no row here."}, refused())

	status, body = confirm("log_unplaceable", false)
	requireProblem(t, status, body, http.StatusConflict, "other_refusal")
	const note = `"note":"events_unknown: 2 records have no row here. ` +
		`Mails that this database forgot to have sent go out again."`
	for _, dryRun := range []bool{true, false} {
		require.False(t, refused().Confirmed)
		status, body = confirm("events_unknown", dryRun)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, fmt.Sprintf(`{"dry_run":%t,"count":1,"failed":0,%s}`, dryRun, note), string(body))
	}
	require.True(t, refused().Confirmed)

	actions := read[adminapi.Actions](t, b, "audit", adminapi.AuditQuery{Subject: "events_unknown"})
	require.Len(t, actions.Items, 1)
	done := actions.Items[0]
	require.Equal(t, []string{"ada", "confirm", "r", "events_unknown: 2 records have no row here.", "confirmed"},
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
	for query, more := (adminapi.LostQuery{Limit: 2}), true; more; more = query.After != "" {
		page := read[adminapi.LostEvents](t, b, "outbox/lost", query)
		query.After = page.Next
		for _, e := range page.Items {
			ids = append(ids, e.EventID)
			require.Nil(t, e.Payload)
			require.JSONEq(t, `{"ce_id":"x"}`, string(e.Headers))
		}
	}
	require.Equal(t, []string{"e0", "e1", "e2", "e3", "e4"}, ids)
	query := adminapi.LostQuery{Topic: "users", Key: "odd", Payload: true}
	odd := read[adminapi.LostEvents](t, b, "outbox/lost", query).Items
	require.Len(t, odd, 2)
	require.JSONEq(t, `{"n":1}`, string(odd[0].Payload))
	b.refuses(t, "POST", "outbox/lost", `{"after":"users"}`, http.StatusUnprocessableEntity, "invalid_value")
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
