package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestTraceJoinsWhatTheServicesKnow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	counted := func(stories map[string]string) http.HandlerFunc {
		known := map[string]string{
			"story/user":   `{"id":"user","kind":"user","steps":[],"related":[]}`,
			"story/event":  `{"id":"event","steps":[],"related":[]}`,
			"story/caused": `{"id":"caused","steps":[],"related":[]}`,
		}
		for path, story := range stories {
			known["story/"+path] = story
		}
		return func(w http.ResponseWriter, r *http.Request) {
			id := idOf(r)
			mu.Lock()
			asked[r.Header.Get("Twinbox-Service")+" "+id[1:]]++
			mu.Unlock()
			says(known["story"+id])(w, r)
		}
	}
	customer := listener(t, counted(map[string]string{
		"user": `{"id":"user","kind":"key","related":["event"],"steps":[
			{"at":"2026-11-21T10:00:00.500Z","station":"outbox","service":"customer","event_id":"event",
				"position":1,"topic":"t"}]}`,
		"event": `{"id":"event","kind":"event","related":["caused","user"],"steps":[
			{"at":"2026-11-21T10:00:00.500Z","station":"outbox","service":"customer","event_id":"event",
				"position":1,"topic":"t"},
			{"at":"2026-11-21T10:00:00.700Z","station":"record","service":"customer","event_id":"event",
				"topic":"t","partition":1,"offset":7}
			]}`,
	}))
	notification := listener(t, counted(map[string]string{
		"event": `{"id":"event","kind":"event","related":["caused"],"steps":[
			{"at":"2026-11-21T10:00:00.100Z","station":"inbox","service":"notification","consumer":"notification.users",
				"outcome":"applied","event_id":"event"},
			{"at":"2026-11-21T10:00:00.090Z","station":"record","service":"notification","event_id":"event",
				"topic":"t","partition":1,"offset":7}]}`,
		"caused": `{"id":"caused","kind":"event","related":["event"],"steps":[
			{"at":"2026-11-21T10:00:02Z","station":"outbox","service":"notification","event_id":"caused",
				"position":1,"topic":"m"}]}`,
	}))
	var story adminapi.Story
	at(t, customer, notification, "trace", "user", "--json").json(t, &story)
	require.Equal(t, adminapi.StoryKindUser, story.Kind)
	var order []string
	for _, s := range story.Steps {
		order = append(order, string(s.Station)+" "+s.EventID)
	}
	require.Equal(t, []string{"outbox event", "record event", "inbox event", "outbox caused"}, order)
	require.Equal(t, map[string]int{
		"customer user": 1, "customer event": 1, "customer caused": 1,
		"notification user": 1, "notification event": 1, "notification caused": 1,
	}, asked)
	seen := at(t, customer, notification, "trace", "user")
	require.Zero(t, seen.code, seen.stderr)
	require.Contains(t, seen.stdout, "notification.users")
	require.Regexp(t, `record +t `, seen.stdout)

	unknown := at(t, customer, notification, "trace", "caused", "--json")
	require.Zero(t, unknown.code)
	away := listener(t, answers(nil))
	partly := at(t, customer, away, "trace", "user", "--json")
	require.Equal(t, exitPartial, partly.code)
	partly.json(t, &story)
	require.Len(t, story.Steps, 2, "what the other one knows")
	require.Contains(t, partly.stderr, "notification: no (unavailable)")
}

func TestTraceOfNothing(t *testing.T) {
	t.Parallel()
	nothing := listener(t, answers(map[string]string{"story/x": `{"id":"x","steps":[],"related":[]}`}))
	r := at(t, nothing, nothing, "trace", "x", "--json")
	require.Equal(t, exitNotFound, r.code)
	var document failureDocument
	r.json(t, &document)
	require.Equal(t, "not_found", document.Error.Code)
	require.Contains(t, r.stderr, "nothing is known of x")
	hint := listener(t, answers(map[string]string{"story/x": `{"id":"x","steps":[],"related":[],"note":"Give the key."}`}))
	require.Contains(t, at(t, hint, nothing, "trace", "x").stderr, "Give the key.")
	require.Equal(t, 2, at(t, nothing, nothing, "trace", "").code)
	silent := at(t, listener(t, answers(nil)), "", "trace", "x")
	require.Equal(t, 1, silent.code, "no answer is not that there is nothing")
}

func TestStatusSaysWhyEachServiceWaits(t *testing.T) {
	t.Parallel()
	well := listener(t, answers(map[string]string{"stations": `{"service":"customer","environment":"","status":"ready",
		"at":"2026-11-21T10:00:00Z","causes":[],"stations":[]}`}))
	down := listener(t, answers(map[string]string{"stations": `{"service":"notification","environment":"",
		"status":"ready","at":"2026-11-21T10:00:00Z","stations":[],"causes":[{"code":"mail_server_down","stops":true,
		"what":"The mail server is down.","since":"2026-11-21T09:59:00Z","means":"m","do":"d",
		"details":"x509: no","command":"twinbox mail list"},
		{"code":"relay_paused","what":"It is paused.","means":"m","do":"d","stops":true}]}`}))
	r := at(t, well, down, "status")
	require.Zero(t, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `^customer +- +- +All is well\.`, lines[1])
	require.Regexp(t, `^notification +\d+d +twinbox mail list +The mail server is down\.`, lines[2])
	require.Regexp(t, `^notification +- +- +It is paused\.`, lines[3])
	require.Regexp(t, `is down\. +m +d +x509: no`, at(t, well, down, "status", "-o", "wide").stdout)
	var document map[string]adminapi.Stations
	at(t, well, down, "status", "--json").json(t, &document)
	require.Empty(t, document["customer"].Causes)
	require.Equal(t, "relay_paused", document["notification"].Causes[1].Code)
	require.Equal(t, exitPartial, at(t, well, listener(t, answers(nil)), "status").code)
}
