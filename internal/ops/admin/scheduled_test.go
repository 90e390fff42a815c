package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

const scheduleRowSQL = `
insert into public.outbox_scheduled (name, due_at, event_type, source, topic, key, data_schema, payload)
values ($1, clock_timestamp() + $2::interval, 'com.example.reminded.v1', '/test', 'reminders', 'k', '', '{}')`

func TestAScheduledEventIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, in := range map[string]string{"later": "1 hour", "overdue": "-1 hour"} {
		b.exec(t, scheduleRowSQL, name, in)
	}
	list := func(query adminapi.ScheduledQuery) adminapi.ScheduledEvents {
		return read[adminapi.ScheduledEvents](t, b, "outbox/scheduled", query)
	}
	cancel := func(dryRun bool) (int, []byte) {
		return b.change(t, "outbox/scheduled/cancel", dryRun, `,"name":"later"`)
	}
	first := list(adminapi.ScheduledQuery{Limit: 1})
	require.True(t, first.More)
	require.Len(t, first.Items, 1)
	require.Equal(t, "overdue", first.Items[0].Name)
	require.GreaterOrEqual(t, first.Items[0].OverdueSeconds, 3600.0)
	require.Empty(t, list(adminapi.ScheduledQuery{Key: "other"}).Items)

	for _, dryRun := range []bool{true, false} {
		require.Len(t, list(adminapi.ScheduledQuery{Topic: "reminders", Key: "k"}).Items, 2)
		status, body := cancel(dryRun)
		require.Equal(t, http.StatusOK, status, string(body))
		require.JSONEq(t, fmt.Sprintf(`{"dry_run":%t,"count":1,"failed":0}`, dryRun), string(body))
	}
	rest := list(adminapi.ScheduledQuery{})
	require.False(t, rest.More)
	require.Len(t, rest.Items, 1)
	status, body := cancel(false)
	requireProblem(t, status, body, http.StatusNotFound, "not_scheduled")

	actions := read[adminapi.Actions](t, b, "audit", adminapi.AuditQuery{Kind: "scheduled_event"})
	require.Len(t, actions.Items, 1)
	require.Equal(t, "ada cancel later: r", actions.Items[0].By+" "+actions.Items[0].Verb+
		" "+actions.Items[0].Subject+": "+actions.Items[0].Reason)
	require.Equal(t, map[string]string{"type": "com.example.reminded.v1", "topic": "reminders", "key": "k"},
		actions.Items[0].Detail)
}
