package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
)

func TestOutboxStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, shown string }{
		{`{"scheduled":3,"overdue_seconds":61.2}`, `(?m)^SERVICE +SCHEDULED +OVERDUE\ncustomer +3 +61s\n$`},
		{
			`{"leading":true,"paused":{"by":"ada","reason":"moving","since":"2026-01-02T03:04:05Z"}}`,
			`(?s)\ncustomer +paused .*\nSERVICE +PAUSED +BY +REASON\ncustomer +\d+d +ada +moving\n$`,
		},
		{
			`{"leading":true,"database_back_at":"2026-01-02T03:04:05Z","lost":12,"healing":2,
				"refused":{"code":"events_unknown","text":"12 records have no row here.","confirmed":false}}`,
			`(?s)\ncustomer +refuses .*\nnotification +leading .*\nSERVICE +REFUSED +CONFIRMED +WHY\n` +
				`customer +events_unknown +no +12 records have no row here\.\n\n` +
				`SERVICE +DATABASE WENT BACK +EVENTS LOST +HEALING\ncustomer +\d+d +12 +2\n$`,
		},
	} {
		customer := listener(t, answers(map[string]string{"outbox/status": c.answer}))
		notification := listener(t, answers(map[string]string{"outbox/status": `{"leading":true}`}))
		require.Regexp(t, c.shown, at(t, customer, notification, "outbox", "status").stdout)
	}
}

func TestOutboxLost(t *testing.T) {
	t.Parallel()
	const event = `{"topic":"users","partition":2,"offset":%d,"event_id":"e%[1]d","type":"renamed","key":"k",
		"version":%[1]d,"appended_at":"2026-01-02T03:04:05Z",
		"found_at":"2026-01-02T03:05:00Z","headers":{"ce_id":"e"},"bytes":2%s}`
	customer := listener(t, func(w http.ResponseWriter, r *http.Request) {
		n, payload, next := 1, "", `,"next":"users/2/1/1/e1"`
		var asked adminapi.LostQuery
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if asked.Payload {
			payload = `,"payload":"e30="`
		}
		if asked.After == "users/2/1/1/e1" {
			n, next = 2, ""
		}
		_, _ = fmt.Fprintf(w, `{"items":[`+event+`]%s}`, n, payload, next)
	})
	notification := listener(t, says(`{"items":[]}`))
	r := at(t, customer, notification, "outbox", "lost")
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `^SERVICE +RECORD +AGE +TYPE +KEY +VERSION +EVENT ID\n`+
		`customer +users\[2\]@1 +\d+d +renamed +k +1 +e1\n`+
		`customer +users\[2\]@2 +\d+d +renamed +k +2 +e2\n$`, r.stdout)
	r = at(t, customer, notification, "outbox", "lost", "--payload")
	require.Regexp(t, `(?m)^customer .* e2 +\{"ce_id":"e"\} +\{\}$`, r.stdout)
	var document struct {
		Items []struct {
			Service string
			adminapi.LostEvent
		}
	}
	at(t, customer, notification, "outbox", "lost", "--payload", "--json").json(t, &document)
	require.Len(t, document.Items, 2)
	require.Equal(t, "customer: {}", document.Items[1].Service+": "+string(document.Items[1].Payload))

	require.Equal(t, "No lost events.\n", at(t, notification, "", "outbox", "lost").stdout)
}

// Each service has its own relay and its own names.
func TestAChangeOfOneServiceNamesIt(t *testing.T) {
	t.Parallel()
	customer, notification := listener(t, says(`{"count":1}`)), listener(t, says(`{}`))
	for _, line := range []string{
		"outbox pause", "outbox confirm events_unknown", "outbox scheduled cancel n", "call pauseRelay",
		"call confirmRefusal code=events_unknown",
	} {
		r := at(t, customer, notification, strings.Fields(line)...)
		require.Equal(t, service.ExitUsage, r.code, line)
		require.Contains(t, r.stderr, "give --service too")
		require.Zero(t, at(t, customer, notification, strings.Fields(line+" --service customer")...).code, line)
	}
}
