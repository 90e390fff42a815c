package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox/relay"
)

// What an operator is told to do fits what is wrong with the dead letter: one that waits for another is not replayed by
// itself, one whose content is wrong not as it is, and one that may have been applied not without looking.
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
		"refused by the code": {waiting(permanent, inbox.CodeHandlerFailed), "when the cause is gone, twinbox dlq replay"},
		"an outage":           {waiting(string(failure.Transient), "timeout"), "when the cause is gone, twinbox dlq replay"},
	} {
		got := nextStep(c.letter, "customer/1")
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
		require.Equal(t, want, stateOf(l))
	}
}

func TestALetterAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	l := adminapi.DeadLetter{
		ID: 7, State: "waiting", Replays: 2, EditedBy: "ada", EditedAt: time.Unix(0, 0),
		Payload: []byte("\x1b[2J{}"), Error: "line\nbreak",
	}
	shown := func(c DLQShow, l adminapi.DeadLetter) string {
		var out strings.Builder
		c.write(&streams{out: &out}, "customer", adminapi.DeadLetterDetail{
			Letter: l, History: []adminapi.Action{{At: time.Unix(0, 0), Verb: "edit", By: "ada", Reason: "r"}},
		})
		return out.String()
	}
	text := shown(DLQShow{Payload: true}, l)
	require.NotContains(t, text, "\x1b", "a payload does not steer the terminal")
	require.Contains(t, text, "payload    ?[2J{}\n")
	require.Contains(t, text, "replays    2 failed\n")
	require.Contains(t, text, "edited     by ada at 1970-01-01T00:00:00Z\n")
	require.Contains(t, text, "error      line?break\n")
	require.Contains(t, text, "history    1970-01-01T00:00:00Z edit by ada: r\n")
	require.NotContains(t, shown(DLQShow{}, l), "payload", "which holds personal data")
	require.NotContains(t, shown(DLQShow{}, adminapi.DeadLetter{}), "replays")
}

func TestTheRelayInOneWord(t *testing.T) {
	t.Parallel()
	status := func(s relay.Status, more bool) adminapi.OutboxStatus {
		return adminapi.OutboxStatus{Status: s, WaitingMore: more}
	}
	require.Equal(t, "no leader", relayOf(status(relay.Status{}, false)))
	require.Equal(t, "leading", relayOf(status(relay.Status{Leading: true}, false)))
	require.Equal(t, "paused", relayOf(status(relay.Status{Leading: true, Paused: &relay.Paused{}}, false)))
	require.Equal(t, "5", waitingOf(status(relay.Status{Waiting: 5}, false)))
	require.Equal(t, "100000 or more", waitingOf(status(relay.Status{Waiting: 100000}, true)))
}

func TestWhereARecordLay(t *testing.T) {
	t.Parallel()
	require.Equal(t, "t[0]@0", recordOf(adminapi.InboxEvent{Topic: "t"}))
	require.Empty(t, recordOf(adminapi.InboxEvent{}))
}

// What waits is one table, the deliveries of the process another; every delivery is in one of its columns.
func TestInboxStatsAddUp(t *testing.T) {
	t.Parallel()
	var s adminapi.InboxStats
	s.Items = []adminapi.ConsumerStats{{
		Consumer: "c", Dead: 4, Parked: 6, LagRecords: new(int64(17)), LagSeconds: new(61.4), Outcomes: map[string]int64{
			"applied": 5, "duplicate": 3, "stale": 2, "parked": 7, "gap": 1, "dead": 11, "conflict": 1, "ignored": 9,
		},
	}, {Consumer: "d", Outcomes: map[string]int64{}}}
	s.StartedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stats, err := json.Marshal(s)
	require.NoError(t, err)
	r := at(t, listener(t, answers(map[string]string{"inbox/stats": string(stats)})), "", "inbox", "stats")
	lines := strings.Split(r.stdout, "\n")
	require.Equal(t, []string{"c", "17", "1m1s", "4", "6"}, strings.Fields(lines[1]))
	require.Equal(t, []string{"d", "unknown", "-", "0", "0"}, strings.Fields(lines[2]))
	require.Equal(t, []string{"CONSUMER", "SINCE", "APPLIED", "DUPLICATE", "STALE", "PARKED", "GIVEN", "UP", "OTHER"},
		strings.Fields(lines[5]))
	require.Equal(t, []string{"c", "2026-01-02T03:04:05Z", "5", "3", "2", "8", "12", "9"}, strings.Fields(lines[6]))
}
