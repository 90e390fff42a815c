package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
)

const aKey = "01980a5c-5f10-7b1e-8c55-2f0a6b7c8d9e"

// The types are foreign: a rename of the project would change widths.
var everything = answers(map[string]string{
	"service": `{}`,
	"dead-letters/query": `{"next":1234567,"items":[{"id":1234567,"consumer":"notification.users",
		"event_id":"` + anID + `","type":"org.example.customer.user-registered.v1",
		"key":"` + aKey + `","version":12,"code":"schema_violation",
		"error":"check event: schema_violation: / required","attempts":17,"state":"discarded",
		"failed_at":"2026-11-21T16:58:46Z"}]}`,
	"dead-letters/groups": `{"items":[{"consumer":"notification.users","code":"schema_violation","count":12345,
		"keys":12345,"type":"org.example.customer.user-registered.v1","newest":"2026-11-21T16:58:46Z",
		"example":1234567,		"error":"check event: schema_violation: / required"}]}`,
	"dead-letters/discard": `{"result":{"dry_run":false,"count":0,"failed":1,"errors":[` +
		`{"subject":"1234567","code":"behind_waiting","detail":"it is longer than what eighty columns have room for"}]}}`,
	"inbox/events": `{"items":[{"consumer":"notification.users","event_id":"` + anID + `","outcome":"replayed, applied",
		"type":"org.example.customer.user-registered.v1","processed_at":"2026-11-21T16:58:46Z","topic":"customer.users.v1",
		"partition":11,"offset":1234567,"dead_letter":1234567}]}`,
	"inbox/history": `{"more":true,"unread":"2026-11-21T16:58:46.123Z","items":[{"consumer":"notification.users",
		"event_id":"` + anID + `","outcome":"applied","type":"org.example.customer.user-registered.v1",
		"topic":"customer.users.v1","processed_at":"2026-11-21T16:58:46Z","partition":11,
		"offset":1234567,"processing_time_ms":1234567,
		"metadata":{"notification_id":"` + anID + `"}}]}`,
	"outbox/status": `{"leading":true,"epoch":3,"head":1234567,"waiting":1234567,"parked_keys":1234,"held":12,"parked":[{
		"topic":"customer.users.v1","key":"` + aKey + `","position":1234567,"held":12,"permanent":true,
		"parked_at":"2026-11-21T16:58:46Z","reason":"MESSAGE_TOO_LARGE: the record is larger than the topic takes"}]}`,
	"outbox/events": `{"items":[{"position":1234567,"event_id":"` + anID + `","key":"` + aKey + `","version":12,
		"type":"org.example.customer.user-registered.v1","occurred_at":"2026-11-21T16:58:46Z","state":"published"}]}`,
	"mails": `{"next":"` + anID + `","items":[{"id":"` + anID + `","state":"uncertain","template":"verification",
		"user_id":"` + aKey + `","attempts":1,"created_at":"2026-11-21T16:58:46Z",
		"error":"its claimant vanished after it had begun"}]}`,
	"stations": `{"service":"notification","at":"2026-11-21T16:58:46Z","status":"ready","stations":[],"causes":[
		{"code":"keys_parked","what":"1 key is parked and holds 12 events; the broker says: MESSAGE_TOO_LARGE.",
		"since":"2026-11-21T16:58:46Z","command":"twinbox outbox release"}]}`,
	"story/" + anID: `{"id":"` + anID + `","kind":"event","related":[],"steps":[
		{"at":"2026-11-21T16:58:46.123Z","station":"outbox","service":"notification","outcome":"published",
			"event_id":"` + anID + `","event_type":"org.example.customer.user-registered.v1",
			"key":"` + aKey + `","version":12,"position":1234567,"topic":"customer.users.v1","correlation_id":"` + anID + `"},
		{"at":"2026-11-21T16:58:47.123Z","station":"dead_letter","service":"notification","consumer":"notification.users",
			"outcome":"waiting","event_id":"` + anID + `","cause":"schema_violation","subject":"1234567",
			"topic":"customer.users.v1","partition":11,"offset":1234567,"detail":"attempts: 5"}]}`,
	"audit": `{"more":false,"items":[{"id":1,"at":"2026-11-21T16:58:46Z","by":"ada","verb":"replay","kind":"dead_letter",
		"subject":"1234567","reason":"a reason of many words that explains at length why this was done at all","count":1,
		"detail":{"outcome":"refused","code":"behind_waiting"}}]}`,
})

func TestIdsAreWhole(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	addr := listener(t, everything)
	const ref = "notification/1234567"
	for _, c := range []struct {
		command string
		whole   []string
	}{
		{"dlq list", []string{ref, "notification.users", "schema_violation", "user-registered "}},
		{"dlq list --each", []string{ref, aKey}},
		{"dlq list --each --state all", []string{ref, aKey, "discarded"}},
		{"dlq discard 1234567 --yes --reason r", []string{ref}},
		{"mail list --state uncertain", []string{"notification", anID, "uncertain"}},
		{"inbox lookup " + anID, []string{"notification.users", ref}},
		{"inbox history t.v1", []string{"notification.users", anID}},
		{"outbox status", []string{"customer.users.v1", aKey, "1234567"}},
		{"outbox tail", []string{"notification@1234567", aKey}},
		{"status", []string{"notification", "1 key is parked and holds 12 events; the broker says: MESSAGE_TOO_LARGE."}},
		{"trace " + anID, []string{anID, "16:58:46.123Z", "waiting, schema_violation"}},
		{"audit", []string{ref, "replay (refused: behind_waiting)"}},
	} {
		args := append(strings.Fields(c.command), "--admin", "notification="+addr)
		seen := twinbox(t, args...).stdout
		for _, word := range c.whole {
			require.Contains(t, seen, word, "%s:\n%s", c.command, seen)
		}
		wide := twinbox(t, append(args, "-o", "wide")...)
		bare := twinbox(t, append(args, "--no-headers")...)
		require.NotRegexp(t, `\b\d+[smhd]\b`, wide.stdout, "%s: times instead of ages", c.command)
		require.Less(t, strings.Count(bare.stdout, "\n"), strings.Count(wide.stdout, "\n"), c.command)
	}
	require.Contains(t, twinbox(t, "outbox", "tail", "-o", "wide", "--admin", "notification="+addr).stdout,
		"org.example.customer.user-registered.v1")
}

func TestAListSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	addr := listener(t, everything)
	r := at(t, "", addr, "dlq", "list", "--each")
	require.Contains(t, r.stderr, "continue with --service notification --after notification/1234567")
	require.NotContains(t, r.stdout, "STATE")
	var document struct{ Next []string }
	at(t, "", addr, "dlq", "list", "--each", "--json").json(t, &document)
	require.Equal(t, []string{"notification/1234567"}, document.Next)
	require.Contains(t, at(t, "", addr, "dlq", "ls", "--each", "--state", "all").stdout, "STATE")
	require.Contains(t, at(t, "", addr, "mail", "list").stderr, "continue with --service notification --after "+anID)

	history := at(t, "", addr, "inbox", "history", "t.v1")
	require.Contains(t, history.stderr, "notification has more: give a larger --limit, or narrower conditions")
	unread := listener(t, answers(map[string]string{"inbox/history": `{"more":false,"items":[],
		"unread":"2026-11-21T16:58:46.123Z"}`}))
	require.Contains(t, at(t, "", unread, "inbox", "history", "t.v1").stderr,
		"events of 2026-11-21T16:58:46.123Z and older may be missing; continue with --until 2026-11-21T16:58:46.124Z")
	require.Regexp(t, anID+` +2026-11-21T16:58:46Z +1234567 +customer.users.v1\[11\]@1234567`, history.stdout)

	var asked []string
	pages := listener(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, string(body))
		n := len(asked)
		next := ""
		if n < 3 {
			next = fmt.Sprintf(`"next":%d,`, n)
		}
		says(fmt.Sprintf(`{%s"items":[{"id":%d,"consumer":"c","code":"x"}]}`, next, n))(w, r)
	})
	r = at(t, "", pages, "dlq", "list", "--each", "--all", "-ojson")
	require.Len(t, asked, 3, "every page is asked for")
	require.Contains(t, asked[2], `"after":2`)
	require.Equal(t, 3, strings.Count(r.stdout, `"ref"`))
	r = at(t, "", pages, "dlq", "list", "--each", "--after", "notification/7", "-n", "1")
	require.Contains(t, asked[3], `"after":7`)
	require.Zero(t, r.code)
}

func TestSinceAnHour(t *testing.T) {
	t.Parallel()
	for text, ago := range map[string]time.Duration{"1h": time.Hour, "90s": 90 * time.Second, "2d": 48 * time.Hour} {
		var since instant
		require.NoError(t, since.UnmarshalText([]byte(text)))
		require.WithinDuration(t, time.Now().Add(-ago), since.Time, 2*time.Hour, text) // the clocks may change in between
	}
	var at instant
	require.NoError(t, at.UnmarshalText([]byte(since)))
	require.Equal(t, since, moment(at.Time))
}

func TestHelpHasExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("mended.json", []byte("{}"), 0o600))
	parser, err := kong.New(&Commands{}, kong.Vars{"version": ""}, kong.Name("twinbox"), kong.PostBuild(withExamples),
		kong.Bind(&streams{}))
	require.NoError(t, err)
	for _, command := range parser.Model.Leaves(true) {
		_, text, found := strings.Cut(command.Detail, "Examples:\n")
		require.True(t, found, "%s has no examples", command.Path())
		require.Contains(t, text, "Exit codes: 0 done")
		n := 0
		for line := range strings.Lines(text) {
			if args, isExample := strings.CutPrefix(strings.TrimSpace(line), "twinbox "); isExample {
				parsed, err := parser.Parse(strings.Fields(args))
				require.NoError(t, err, line)
				require.Equal(t, command.Path(), parsed.Selected().Path(), "of another command")
				n++
			}
		}
		require.Positive(t, n, command.Path())
	}
}

func TestVersionAndMistypedCommands(t *testing.T) {
	t.Parallel()
	r := twinbox(t, "--version")
	require.Zero(t, r.code)
	require.Regexp(t, `^twinbox \S+.*, go1\.\d+`, r.stdout)
	require.Contains(t, twinbox(t, "dlk", "list").stderr, `did you mean "dlq"?`)
	require.Contains(t, twinbox(t, "outbox", "tial").stderr, `did you mean "tail"?`)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "audit\ncall\ncompletion\nconsole\nconsumer\ndlq\n" +
			"inbox\nmail\noutbox\nstatus\ntrace\nverify\n",
		"dlq re":                 "replay\n",
		"dlq list --sta":         "--state\n",
		"dlq ls --sta":           "--state\n",
		"dlq list --state ":      "all\ndiscarded\nreplayed\nwaiting\n",
		"dlq list --key k --sta": "--state\n",
		"completion ":            "bash\nfish\nzsh\n",
		"outbox tail -o j":       "json\n",
		"dlq show customer/1":    "",
		"mail list --state s":    "sent\nskipped\nsubmitting\n",
		"call listM":             "listMails\n",
	} {
		r := twinbox(t, append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, want, r.stdout, line)
	}
	for shell := range completions {
		r := twinbox(t, "completion", shell)
		require.Zero(t, r.code)
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // what that shell makes of it the others cannot say
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = strings.NewReader(r.stdout)
		said, err := check.CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, said)
	}
}

func TestCompletionOffersNames(t *testing.T) {
	addr := listener(t, answers(map[string]string{
		"inbox/stats": `{"items":[{"consumer":"notification.users"}]}`,
		"outbox/status": `{"refused":{"code":"events_unknown"},
			"parked":[{"topic":"t","key":"k1"},{"topic":"t","key":"k2"}]}`,
		"mails":               `{"items":[{"id":"` + anID + `"}]}`,
		"dead-letters/query":  `{"items":[{"id":17},{"id":18}]}`,
		"dead-letters/groups": `{"items":[{"code":"c","type":"t.v1"}]}`,
	}))
	t.Setenv("TWINBOX_ADMIN", "notification="+addr)
	known := ""
	for _, name := range slices.Sorted(slices.Values(serviceNames)) {
		known += name + "\n"
	}
	t.Setenv(tokenVariable, "t")
	for line, want := range map[string]string{
		"consumer pause ":          "notification.users\n",
		"outbox confirm ":          "events_unknown\n",
		"outbox release --key ":    "k1\nk2\n",
		"outbox release --topic ":  "t\n",
		"mail retry ":              anID + "\n",
		"dlq show notification/1":  "notification/17\nnotification/18\n",
		"dlq replay --code ":       "c\n",
		"dlq list --type ":         "t.v1\n",
		"outbox status --service ": known,
	} {
		r := twinbox(t, append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		require.Equal(t, want, r.stdout, "%s: %s", line, r.stderr)
	}
}

func TestHelpBeginsWithTheCommandsOwnFlags(t *testing.T) {
	t.Parallel()
	help := twinbox(t, "dlq", "replay", "--help").stdout
	own, general := strings.Index(help, "--accept-gap"), strings.Index(help, "--token-file")
	require.Positive(t, own)
	require.Less(t, own, general)
	require.Contains(t, help, "Flags of every command:")
}

func TestAFilterThatPicksNone(t *testing.T) {
	t.Parallel()
	r := at(t, "", listener(t, says(`{"items":[]}`)), "dlq", "list", "--consumer", "customer.profil")
	require.Zero(t, r.code)
	require.Equal(t, "No dead letters that the filter picks.\n", r.stdout)
}

func TestCall(t *testing.T) {
	t.Parallel()
	addr, requests := recorder(t)
	for _, c := range []struct {
		args []string
		want recorded
	}{
		{[]string{"listTopics"}, recorded{"outbox/topics", ""}},
		{[]string{"getDeadLetter", "id=17", "payload=true"}, recorded{"dead-letters/show", `{"id":17,"payload":true}`}},
		{
			[]string{"queryDeadLetters", "code=c", "ids=[1,2]", "after=3"},
			recorded{"dead-letters/query", `{"code":"c","ids":[1,2],"after":3}`},
		},
		{
			[]string{"discardDeadLetters", "filter=text", "filter.code=c", "--by", "ada"},
			recorded{"dead-letters/discard", `{"filter":{"code":"c"},"by":"ada","reason":"dry run","dry_run":true}`},
		},
		{
			[]string{"pauseConsumer", "consumer=c", "--by", "ada"},
			recorded{"consumers/pause", `{"consumer":"c","by":"ada","reason":"dry run","dry_run":true}`},
		},
		{
			[]string{"discardDeadLetters", "filter.code=c", "--by", "ada", "--yes", "--reason", "r"},
			recorded{"dead-letters/discard", `{"filter":{"code":"c"},"by":"ada","reason":"r","dry_run":false}`},
		},
	} {
		r := at(t, "", addr, append([]string{"call"}, c.args...)...)
		require.Zero(t, r.code, "%v: %s", c.args, r.stderr)
		got := requests()[len(requests())-1]
		require.Equal(t, c.want.path, got.path)
		if c.want.body != "" {
			require.JSONEq(t, c.want.body, got.body)
		}
	}
	for _, args := range [][]string{{"nothing"}, {"listTopics", "x"}, {"listTopics", "x=1"}} {
		require.Equal(t, service.ExitUsage, at(t, "", addr, append([]string{"call"}, args...)...).code, args)
	}
	asked := len(requests())
	for _, operation := range []string{"editDeadLetter", "discardDeadLetters", "replayDeadLetters"} {
		r := at(t, addr, addr, "call", operation, "id=17", "--yes", "--reason", "r")
		require.Equal(t, service.ExitUsage, r.code, "17 is another dead letter in each service")
	}
	for _, request := range requests()[asked:] {
		require.NotContains(t, request.path, "dead-letters")
	}
	require.Regexp(t, `(?m)^pauseRelay +POST /admin/v1/outbox/pause +Pause the relay$`, at(t, "", addr, "call").stdout)
}

func tailOf(r *http.Request) (asked adminapi.OutboxQuery) {
	_ = json.NewDecoder(r.Body).Decode(&asked)
	return asked
}

// The clock of the operator's machine is ahead, and notification answers from the second look on.
func TestTailFollowsServicesAsTheyAnswer(t *testing.T) {
	event := func(id int) string {
		return fmt.Sprintf(`{"position":%d,"event_id":"e%d","occurred_at":"2026-11-22T10:00:0%dZ"}`, id, id, id)
	}
	looks := map[string]*atomic.Int64{"customer": {}, "notification": {}}
	page := func(service string, pages ...[]int) string {
		return listener(t, func(w http.ResponseWriter, r *http.Request) {
			look := min(looks[service].Add(1), int64(len(pages))) - 1
			if pages[look] == nil || tailOf(r).Limit != maxLimit { // each look reaches equally far back
				answers(nil)(w, r)
				return
			}
			var items []string
			for _, id := range pages[look] {
				items = append(items, event(id))
			}
			says(`{"next":7,"items":[`+strings.Join(items, ",")+`]}`)(w, r)
		})
	}
	customer := page("customer", []int{}, []int{1}, nil, []int{1, 2})
	notification := page("notification", nil, []int{3, 4}, []int{3, 4}, []int{3, 4}, []int{3, 4, 5})
	t.Setenv(tokenVariable, "t")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	out := &awaited{text: "e5", stop: stop}
	args := []string{
		"outbox", "tail", "-f", "-o", "wide", "-n", "1",
		"--admin", "customer=" + customer, "--admin", "notification=" + notification,
	}
	var stderr bytes.Buffer
	require.Zero(t, run(ctx, args, out, &stderr))
	require.NotContains(t, stderr.String(), "more")
	require.Equal(t, 1, strings.Count(out.String(), "STATE"), "one heading")
	require.Equal(t, []string{"e1", "e4", "e2", "e5"}, regexp.MustCompile(`e[0-9]`).FindAllString(out.String(), -1))
}

func TestTailGoesBackUntilItHasEnough(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	var asked []string
	addr := listener(t, func(w http.ResponseWriter, r *http.Request) {
		query := tailOf(r)
		asked = append(asked, fmt.Sprint(query.After, " ", query.Limit))
		pages := []string{
			`{"items":[{"position":900,"event_id":"e9","occurred_at":"2026-11-22T10:00:00Z"}],"next":500}`,
			`{"items":[],"next":100}`, `{"items":[{"position":7,"event_id":"e7","occurred_at":"2026-11-22T10:00:00Z"}]}`,
		}
		says(pages[len(asked)-1])(w, r)
	})
	r := twinbox(t, "outbox", "tail", "--type", "rare", "-n", "3", "-o", "wide", "--admin", "customer="+addr)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, []string{"0 3", "500 2", "100 2"}, asked)
	require.Equal(t, []string{"e7", "e9"}, regexp.MustCompile(`e[0-9]`).FindAllString(r.stdout, -1))
}

func TestWatchGoesOn(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	var asked atomic.Int64
	addr := listener(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			answers(nil)(w, r)
			return
		}
		says(fmt.Sprintf(`{"leading":true,"head":%d}`, 1000+asked.Load()))(w, r)
	})
	ctx, stop := context.WithTimeout(t.Context(), patience)
	out := &awaited{text: "1004", stop: stop}
	var stderr bytes.Buffer
	code := run(ctx, []string{"outbox", "status", "-w", "--every", "100ms", "--admin", "customer=" + addr}, out, &stderr)
	require.Zero(t, code)
	require.Contains(t, out.String(), "1001")
	require.Contains(t, stderr.String(), "unavailable")
}

type awaited struct {
	seen bytes.Buffer
	text string
	stop func()
}

func (a *awaited) Write(p []byte) (int, error) {
	n, err := a.seen.Write(p)
	if strings.Contains(a.seen.String(), a.text) {
		a.stop()
	}
	return n, err
}

func (a *awaited) String() string { return a.seen.String() }
