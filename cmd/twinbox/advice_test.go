package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestTheNextStepOfALetter(t *testing.T) {
	t.Parallel()
	waiting := func(class, code string) adminapi.DeadLetter {
		return adminapi.DeadLetter{State: "waiting", Class: class, Code: code}
	}
	const permanent = string(failure.Permanent)
	edited := waiting(permanent, "schema_violation")
	edited.EditedBy = "ada"
	editedGap := waiting(permanent, inbox.CodeGap)
	editedGap.EditedBy = "ada"
	for name, c := range map[string]struct {
		letter adminapi.DeadLetter
		want   string
	}{
		"settled":             {adminapi.DeadLetter{State: "replayed", Class: "permanent", Code: "schema_violation"}, ""},
		"parked":              {waiting(deadletter.ClassParked, inbox.CodeParked), "replay or discard the dead letter"},
		"gap":                 {waiting(permanent, inbox.CodeGap), "republish the event before it"},
		"jump":                {waiting(deadletter.ClassParked, inbox.CodeJump), "if its version is wrong"},
		"edited gap":          {editedGap, "republish the event before it"},
		"edited":              {edited, "twinbox dlq replay customer/1"},
		"too old":             {waiting(permanent, inbox.CodeTooOld), "find out whether it was applied"},
		"content":             {waiting(permanent, "schema_violation"), "twinbox dlq edit customer/1 and replay it"},
		"no id":               {waiting(permanent, "missing_id"), "twinbox dlq edit customer/1 --header ce_id=NEW_ID and"},
		"a used id":           {waiting(permanent, inbox.CodeConflict), "ask for the event under a new id; twinbox dlq"},
		"refused by the code": {waiting(permanent, inbox.CodeHandlerFailed), "when the cause is gone, twinbox dlq replay"},
		"an outage":           {waiting(string(failure.Transient), "timeout"), "when the cause is gone, twinbox dlq replay"},
	} {
		got := nextStep(values(c.letter), "customer/1")
		require.True(t, strings.HasPrefix(got, c.want), "%s: %s", name, got)
		require.Equal(t, c.want == "", got == "", name)
	}
}

func TestTheStateOfALetter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	for want, l := range map[string]adminapi.DeadLetter{
		"waiting": {State: "waiting"},
		"waiting; later events of its key park behind it": {State: "waiting", Holds: true},
		"replayed (stale) at 2026-01-02T03:04:05Z":        {State: "replayed", Outcome: "stale", SettledAt: at},
		"discarded at 2026-01-02T03:04:05Z":               {State: "discarded", Holds: true, SettledAt: at},
	} {
		require.Equal(t, want, stateOf(values(l), string(l.State)))
	}
}

func TestALetterAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	shown := func(letter string, args ...string) string {
		customer := listener(t, answers(map[string]string{"dead-letters/show": `{"letter":` + letter + `,
			"history":[{"at":"1970-01-01T00:00:00Z","verb":"edit","by":"ada","reason":"r"}]}`}))
		return at(t, customer, "", append([]string{"dlq", "show", "7"}, args...)...).stdout
	}
	text := shown(`{"id":7,"state":"waiting","replays":2,"edited_by":"ada","edited_at":"1970-01-01T00:00:00Z",
		"payload":"` + base64.StdEncoding.EncodeToString([]byte("\x1b[2J{}")) + `","error":"line\nbreak","code":"c",
		"headers":[{"name":"ce_type","value":"dC52MQ=="}]}`)
	require.NotContains(t, text, "\x1b", "a payload does not steer the terminal")
	require.Contains(t, text, "id         customer/7\n")
	require.Contains(t, text, "payload    ?[2J{}\n")
	require.Contains(t, text, "header     ce_type=t.v1\n")
	require.Contains(t, text, "replays    2\n")
	require.Contains(t, text, "edited     1970-01-01T00:00:00Z\neditor     ada\n")
	require.Contains(t, text, "error      line?break\n")
	require.Contains(t, text, "next       twinbox dlq replay customer/7\n")
	require.Contains(t, text, "history    1970-01-01T00:00:00Z edit by ada: r\n")
	require.NotContains(t, shown(`{"id":7}`), "payload", "which holds personal data")
	require.NotContains(t, shown(`{"id":7,"replays":0}`), "replays")
}

func TestForms(t *testing.T) {
	t.Parallel()
	of := func(text string) (i item) {
		require.NoError(t, json.Unmarshal([]byte(text), &i))
		return i
	}
	for _, c := range []struct{ of, path, form, want string }{
		{`{}`, "leading", "relay", "no leader"},
		{`{"leading":true}`, "leading", "relay", "leading"},
		{`{"leading":true,"paused":{}}`, "leading", "relay", "paused"},
		{`{"waiting":5}`, "waiting", "waiting", "5"},
		{`{"waiting":100000,"waiting_more":true}`, "waiting", "waiting", "100000 or more"},
		{`{"topic":"t","partition":0,"offset":0}`, "topic", "record", "t[0]@0"},
		{`{"topic":"","partition":0,"offset":0}`, "topic", "record", ""},
		{`{"behind":{"b":2,"a":10}}`, "behind", "counts", "10 a, 2 b"},
		{`{"type":"com.example.customer.user-renamed.v1"}`, "type", "type", "user-renamed"},
		{`{"s":7321.5}`, "s", "seconds", "2h"},
		{`{"s":0}`, "s", "seconds", ""},
		{`{}`, "lag", "known", "unknown"},
		{`{"verb":"replay","detail":{"outcome":"refused","code":"c"}}`, "verb", "deed", "replay (refused: c)"},
		{`{"verb":"republish","after":"failed"}`, "verb", "deed", "republish (failed)"},
		{`{"head":12345678901}`, "head", "", "12345678901"},
	} {
		require.Equal(t, c.want, show(of(c.of), c.path, c.form, false), c.form)
	}
	require.Equal(t, "com.example.t.v1", show(of(`{"type":"com.example.t.v1"}`), "type", "type", true))
	require.Equal(t, "2026-01-02T03:04:05Z", show(of(`{"at":"2026-01-02T04:04:05+01:00"}`), "at", "age", true))
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 2 * time.Hour: "2h", 47 * time.Hour: "47h",
		48 * time.Hour: "2d",
	} {
		require.Equal(t, want, adminapi.Age(d))
	}
}
