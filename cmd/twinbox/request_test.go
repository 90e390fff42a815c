package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type recorded struct{ path, body string }

func recorder(t *testing.T) (addr string, requests func() []recorded) {
	t.Helper()
	var all []recorded
	addr = listener(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/service") {
			says(`{}`)(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		all = append(all, recorded{strings.TrimPrefix(r.URL.RequestURI(), "/admin/v1/"), string(body)})
		says(`{"result":{"dry_run":false,"count":1,"failed":0},"count":1,"items":[]}`)(w, r)
	})
	return addr, func() []recorded { return all }
}

const (
	since = "2026-01-02T03:04:05Z"
	until = "2026-01-03T03:04:05Z"
	anID  = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"
)

func TestWhatTheServiceIsAsked(t *testing.T) {
	t.Parallel()
	filter := []string{
		"--consumer", "c", "--type", "t", "--key", "k", "--event-id", "e", "--code", "co", "--error", "er",
		"--since", since, "--until", until,
	}
	const filterJSON = `"consumer":"c","type":"t","key":"k","event_id":"e","code":"co","error":"er",` +
		`"since":"` + since + `","until":"` + until + `"`
	who := []string{"--yes", "--reason", "why", "--by", "ada"}
	const done, dry = `"by":"ada","reason":"why","dry_run":false`, `"by":"ada","reason":"dry run","dry_run":true`
	for name, c := range map[string]struct {
		args []string
		want recorded
	}{
		"list": {
			append([]string{"dlq", "list", "--state", "replayed"}, filter...),
			recorded{"dead-letters/groups", `{"state":"replayed",` + filterJSON + `}`},
		},
		"list all": {
			[]string{"dlq", "list", "--state", "all"}, recorded{"dead-letters/groups", `{}`},
		},
		"list each": {
			[]string{"dlq", "list", "--each", "-n", "7", "--after", "9"},
			recorded{"dead-letters/query", `{"state":"waiting","limit":7,"after":9}`},
		},
		"show": {[]string{"dlq", "show", "17", "--payload"}, recorded{"dead-letters/show", `{"id":17,"payload":true}`}},
		"replay": {
			append(append([]string{"dlq", "replay", "--limit", "3", "--rate", "1.5", "--force", "--accept-gap"},
				filter...), who...),
			recorded{"dead-letters/replay", `{` + done + `,"accept_gap":true,"force":true,"rate":1.5,` +
				`"filter":{"state":"waiting","limit":3,` + filterJSON + `}}`},
		},
		"replay ids, dry": {
			[]string{"dlq", "replay", "5", "notification/6", "notification/5", "--by", "ada"},
			recorded{"dead-letters/replay", `{` + dry + `,"filter":{"state":"waiting","ids":[5,6]}}`},
		},
		"discard": {
			append(append([]string{"dlq", "discard"}, filter...), who...),
			recorded{"dead-letters/discard", `{` + done + `,"filter":{"state":"waiting",` + filterJSON + `}}`},
		},
		"mails": {
			[]string{
				"mail", "list", "--state", "sent", "--user", "u", "--event-id", "e", "--since", since, "--until", until,
				"--recipient", "-n", "4", "--after", anID,
			},
			recorded{"mails", `{"after":"` + anID + `","event_id":"e","limit":4,"recipient":true,"since":"` + since +
				`","state":"sent","until":"` + until + `","user_id":"u"}`},
		},
		"mails of all states": {
			[]string{"mail", "list", "--state", "all"}, recorded{"mails", `{"limit":100}`},
		},
		"retry": {
			append([]string{"mail", "retry", anID, strings.ToUpper(anID)}, who...),
			recorded{"mails/retry", `{` + done + `,"ids":["` + anID + `"]}`},
		},
		"mark sent, dry": {
			[]string{"mail", "mark-sent", anID, "--by", "ada"},
			recorded{"mails/mark-sent", `{` + dry + `,"ids":["` + anID + `"]}`},
		},
		"skip": {
			append([]string{"mail", "skip", anID}, who...), recorded{"mails/skip", `{` + done + `,"ids":["` + anID + `"]}`},
		},
		"consumers": {[]string{"consumer", "list"}, recorded{"inbox/stats", ""}},
		"pause": {
			append([]string{"consumer", "pause", "c"}, who...),
			recorded{"consumers/pause", `{` + done + `,"consumer":"c"}`},
		},
		"resume, dry": {
			[]string{"consumer", "resume", "c", "--by", "ada"},
			recorded{"consumers/resume", `{` + dry + `,"consumer":"c"}`},
		},
		"pause the relay": {
			append([]string{"outbox", "pause"}, who...),
			recorded{"outbox/pause", `{` + done + `}`},
		},
		"confirm": {
			append([]string{"outbox", "confirm", "events_unknown"}, who...),
			recorded{"outbox/confirm", `{` + done + `,"code":"events_unknown"}`},
		},
		"resume the relay, dry": {
			[]string{"outbox", "resume", "--by", "ada"},
			recorded{"outbox/resume", `{` + dry + `}`},
		},
		"scheduled": {
			[]string{"outbox", "scheduled", "list", "-n", "3", "--topic", "to", "--key", "k"},
			recorded{"outbox/scheduled", `{"key":"k","limit":3,"topic":"to"}`},
		},
		"cancel": {
			append([]string{"outbox", "scheduled", "cancel", "a name"}, who...),
			recorded{"outbox/scheduled/cancel", `{` + done + `,"name":"a name"}`},
		},
		"lookup": {[]string{"inbox", "lookup", "e 1"}, recorded{"inbox/events", `{"event_id":"e 1"}`}},
		"history": {
			[]string{"inbox", "history", "ty", "--since", since, "--until", until, "-n", "3"},
			recorded{"inbox/history", `{"limit":3,"since":"` + since + `","type":"ty","until":"` + until + `"}`},
		},
		"tail": {
			[]string{"outbox", "tail", "-n", "3", "--topic", "to", "--key", "k", "--type", "ty", "--payload"},
			recorded{"outbox/events", `{"key":"k","limit":3,"payload":true,"topic":"to","type":"ty"}`},
		},
		"republish": {
			append([]string{
				"outbox", "republish", "--from", "1", "--to", "2", "--since", since, "--until", until, "--id", anID,
				"--topic", "to", "--key", "k",
			}, who...),
			recorded{"outbox/republish", `{` + done + `,"from":1,"to":2,"since":"` + since + `","until":"` + until +
				`","event_ids":["` + anID + `"],"topic":"to","key":"k"}`},
		},
		"release": {
			append([]string{"outbox", "release", "--topic", "to", "--key", "k"}, who...),
			recorded{"outbox/release", `{` + done + `,"topic":"to","key":"k"}`},
		},
		"topics": {[]string{"outbox", "topics"}, recorded{"outbox/topics", ""}},
		"drop": {
			[]string{"outbox", "release", "--topic", "to", "--key", "k", "--drop", "12", "--by", "ada"},
			recorded{"outbox/release", `{` + dry + `,"topic":"to","key":"k","drop":12}`},
		},
	} {
		addr, requests := recorder(t)
		r := at(t, "", addr, c.args...)
		require.NotEmpty(t, requests(), "%s: %s", name, r.stderr)
		got := requests()[0]
		require.Equal(t, c.want.path, got.path, name)
		if c.want.body == "" {
			require.Empty(t, got.body, name)
			continue
		}
		require.JSONEq(t, c.want.body, got.body, name)
	}
}
