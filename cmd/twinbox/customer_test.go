package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/testkit"
)

func TestCustomerAndNotificationHaveFlags(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	services, err := (&Connection{
		twoAdmins: twoAdmins{NotificationAdmin: "b:1"}, Admin: map[string]string{"accounts": "c:1"},
	}).services()
	require.NoError(t, err)
	require.Equal(t, []string{"notification", "accounts"}, []string{services[0].Name, services[1].Name})
	_, err = (&Connection{twoAdmins: twoAdmins{NotificationAdmin: "b:1"}, Service: "customer"}).services()
	require.ErrorContains(t, err, "--admin customer=HOST:PORT")
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for line, says := range map[string]string{
		"dlq list --key":                       "--key",
		"dlq list --key a --key b":             "--key is given twice",
		`dlq discard --key ""`:                 "--key is empty",
		"outbox tail --topic=":                 "--topic is empty",
		`status --environment ""`:              "--environment is empty",
		`status --token-file ""`:               "--token-file is empty",
		`inbox lookup ""`:                      "event-id is empty",
		"dlq list --state lost":                "--state",
		"dlq list --service billing":           "--service",
		"dlq list --since 2026-11-21T10:00:00": "--since",
		"dlq list --since 2026-11-21T10:00:00Z --until 2026-11-20T10:00:00Z": "is not after",
		"dlq list --since 2199-01-01T00:00:00Z":                              "is in the future",
		"dlq list --since 0d":                                                "how long ago",
		"dlq list --since=-1h":                                               "how long ago",
		"dlq list --since 0001-01-01T00:00:00Z":                              "how long ago",
		"dlq list --every 5s":                                                "--every goes with --watch",
		"mail list --state lost":                                             `"open","all","pending"`,
		"dlq list --watch --every 1ms":                                       "--every",
		"dlq list --limit 5":                                                 "go with --each",
		"dlq list --each --all -n 5":                                         "can't be used together",
		"dlq list --each --after 3":                                          "--service",
		"mail list --service customer":                                       "send no mails",
		"dlq show 17":                                                        "customer/17",
		"dlq show customer/x":                                                "no id of a dead letter",
		"dlq show customer/0":                                                "no id of a dead letter",
		"dlq show billing/1":                                                 "no service",
		"dlq replay":                                                         "name the dead letters",
		"dlq discard":                                                        "name the dead letters",
		"dlq replay --all --key k":                                           "--all goes with",
		"dlq replay --all --yes":                                             "--reason",
		`dlq replay --all --yes --reason " "`:                                "--reason",
		"dlq replay --all --limit x":                                         "--limit",
		"dlq replay --all --rate NaN":                                        "NaN",
		"dlq replay --all --rate Inf":                                        "Inf",
		"dlq replay --all --rate=-1":                                         "rate is out of its range",
		"outbox republish":                                                   "nothing_selected",
		"outbox republish --from 1":                                          "--service",
		"mail retry 17":                                                      "17 is no id of a mail",
		"outbox republish --id 17":                                           "17 is no id of an event",
		"outbox tail -n 0":                                                   "limit",
		"dlq replay --all --yes --reason \"a\x1b[2J\"":                       "control characters",
	} {
		plain := h.twinbox(t, split(line)...)
		require.Equal(t, service.ExitUsage, plain.code, "%s: %s", line, plain.stderr)
		require.Contains(t, plain.stderr, says, line)
	}
	for _, line := range []string{"dlq list --colour --json", "dlq replay --json", "mail retry 17 --json"} {
		var document failureDocument
		h.twinbox(t, split(line)...).json(t, &document)
		require.Equal(t, service.ExitUsage, document.Error.Exit)
		require.NotEmpty(t, document.Error.Code)
	}
}

func TestNothingFound(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for _, line := range []string{
		"dlq show customer/999999", "inbox lookup never-came", "inbox history none.v1 --consumer customer.profil",
		"mail retry 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10 --yes --reason r",
	} {
		r := h.twinbox(t, split(line)...)
		require.Equal(t, exitNotFound, r.code, "%s: %s", line, r.stderr)
		require.Empty(t, r.stdout)
	}
	for line, says := range map[string]string{
		"dlq replay customer/999999":                                                  "customer/999999  not_found",
		"dlq discard customer/999999 --yes --reason r":                                "customer/999999  not_found",
		"outbox republish --id 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10 --yes --reason r": "Republished 0 events",
	} {
		r := h.twinbox(t, split(line)...)
		require.Equal(t, exitNotFound, r.code, "%s: %s", line, r.stderr)
		require.Contains(t, r.stdout, says)
	}
	for _, line := range []string{
		"dlq list --key none", "dlq list --since 1s", "inbox history none.v1", "dlq replay --key none --yes --reason r",
		"dlq discard --consumer customer.profil --yes --reason r",
	} {
		r := h.twinbox(t, split(line)...)
		require.Zero(t, r.code, "a filter that matches nothing is no failure: %s: %s", line, r.stderr)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for err, code := range map[error]int{syscall.EPIPE: service.ExitOK, syscall.ENOSPC: service.ExitFailure} {
		for _, args := range [][]string{{"outbox", "status"}, {"outbox", "status", "--json"}, {"dlq", "list"}} {
			var stderr bytes.Buffer
			got := run(t.Context(), append(args, "--dir", h.dir), failing{err}, &stderr)
			require.Equal(t, code, got, "%v: %s", args, &stderr)
		}
	}
}

func TestAServiceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := shared(t)
	nowhere := twinbox(t, "outbox", "status", "--dir", t.TempDir())
	require.Equal(t, service.ExitFailure, nowhere.code)
	require.Contains(t, nowhere.stderr, "make run")

	gone := testkit.ReservePort(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte(h.at.AdminToken.Reveal()+"\n"), 0o600))

	none := twinbox(t, "outbox", "status", "--token-file", tokenFile, "--admin", "customer="+gone)
	require.Equal(t, service.ExitFailure, none.code)
	require.Contains(t, none.stderr, "no answer from "+gone)
	var document failureDocument
	twinbox(t, "outbox", "status", "--json", "--token-file", tokenFile, "--admin", "customer="+gone).json(t, &document)
	require.Equal(t, "unreachable", document.Error.Code)
	require.NotContains(t, none.stderr, h.at.AdminToken.Reveal())

	require.NoError(t, os.WriteFile(tokenFile, []byte("another"), 0o600))
	wrong := twinbox(t, "outbox", "status", "--token-file", tokenFile, "--customer-admin", h.at.Services["customer"].Admin)
	require.Equal(t, exitRefused, wrong.code)
	require.Contains(t, wrong.stderr, "unauthorized")

	missing := twinbox(t, "outbox", "status", "--token-file", tokenFile+"x", "--admin", "customer="+gone)
	require.Equal(t, service.ExitUsage, missing.code)
}

func TestNoLogHasTheToken(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for _, part := range []string{"stack", "customer", "notification"} {
		log, err := os.ReadFile(filepath.Join(h.dir, part+".log"))
		require.NoError(t, err)
		require.NotContains(t, string(log), h.at.AdminToken.Reveal())
	}
}

const insertLetter = `
insert into public.dead_letter (consumer, event_id, event_type, key, headers, payload, topic, partition, record_offset,
    class, code, error, attempts, first_failed_at)
values ('customer.profile', $1, 't.v1', $2, '[]', '{"name":17}', 'customer.users.v1', 0, 0, 'permanent', 'a_test', 'e',
    1, clock_timestamp())`

func (h *stack) deadLetter(t *testing.T) (ref, key string) {
	t.Helper()
	key = uuid.NewString()
	h.exec(t, h.at.Databases["customer"], insertLetter, uuid.NewString(), []byte(key))
	var document struct {
		Items []struct{ Ref, Payload string }
	}
	h.twinbox(t, "dlq", "list", "--each", "--key", key, "--json").json(t, &document)
	require.Len(t, document.Items, 1)
	require.Empty(t, document.Items[0].Payload, "no payload unless asked for")
	return document.Items[0].Ref, key
}

func editor(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	script := "#!/bin/sh\ncat > \"$1\" <<'TEXT'\n" + text + "\nTEXT\n"
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is run
	return path
}

func TestEditWithAnEditor(t *testing.T) {
	t.Parallel()
	h := shared(t)
	ref, _ := h.deadLetter(t)
	dry := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":"Ada"}`))
	require.Zero(t, dry.code, dry.stderr)
	require.Contains(t, dry.stdout, "Would edit 1 dead letter of customer.")
	require.Contains(t, dry.stderr, "to use it: --payload ")
	require.Equal(t, `{"name":"Ada"}`, strings.TrimSpace(removeKept(t, dry)), "a dry run keeps the text")
	require.NotContains(t, h.twinbox(t, "dlq", "show", ref, "--payload").stdout, "edited to")

	done := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":"Ada"}`), "--yes", "--reason", "r")
	require.Zero(t, done.code, done.stderr)
	require.Contains(t, h.twinbox(t, "dlq", "show", ref, "--payload").stdout, `edited to  {"name":"Ada"}`)

	file := filepath.Join(t.TempDir(), "payload.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name":"Eve"}`), 0o600))
	overwrite := []string{"dlq", "edit", ref, "--payload", file, "--yes", "--reason", "r"}
	refused := h.twinbox(t, overwrite...)
	require.Equal(t, exitRefused, refused.code)
	require.Contains(t, refused.stderr, "edited_since")
	_, editedAt, _ := strings.Cut(refused.stderr, "--edited-at ")
	editedAt, _, _ = strings.Cut(editedAt, ". ")
	overwritten := h.twinbox(t, append(overwrite, "--edited-at", editedAt)...)
	require.Zero(t, overwritten.code, overwritten.stderr)
	again := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":"Ida"}`), "--yes", "--reason", "r")
	require.Zero(t, again.code, again.stderr)

	same := h.twinbox(t, "dlq", "edit", ref, "--editor", "true", "--yes", "--reason", "r")
	require.Zero(t, same.code, same.stderr)
	require.Contains(t, same.stderr, "nothing to do")
	broken := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":`), "--yes", "--reason", "r")
	require.Equal(t, 2, broken.code)
	require.Contains(t, broken.stderr, "not valid JSON")
	require.Regexp(t, `--payload \S+ --edited-at \S+Z\n`, broken.stderr)
	removeKept(t, broken)
	failed := h.twinbox(t, "dlq", "edit", ref, "--editor", "false", "--yes", "--reason", "r")
	require.Equal(t, 1, failed.code)
	require.Contains(t, failed.stderr, "run editor")
	require.NotContains(t, failed.stderr, "kept in", "the payload was not changed")
}

func removeKept(t *testing.T, r result) (text string) {
	t.Helper()
	_, file, found := strings.Cut(r.stderr, "kept in ")
	require.True(t, found, r.stderr)
	file, _, _ = strings.Cut(file, ";")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	return string(content)
}

func TestSettledAndFailingLetters(t *testing.T) {
	t.Parallel()
	h := shared(t)
	ref, key := h.deadLetter(t)
	replayed := h.twinbox(t, "dlq", "replay", "--key", key, "--yes", "--reason", "r")
	require.Equal(t, exitRefused, replayed.code, "the record is no event: %s", replayed.stdout)
	require.Contains(t, replayed.stdout, ref)
	var sum effects
	h.twinbox(t, "dlq", "replay", ref, "--yes", "--reason", "r", "--json").json(t, &sum)
	require.EqualValues(t, 1, sum.Failed)
	require.Equal(t, ref, sum.Errors[0].Subject)

	file := filepath.Join(t.TempDir(), "payload.json")
	require.Zero(t, h.twinbox(t, "dlq", "discard", "--key", key, "--yes", "--reason", "r").code)
	again := h.twinbox(t, "dlq", "discard", ref, "--yes", "--reason", "r")
	require.Equal(t, exitRefused, again.code)
	require.Regexp(t, ref+" +not_waiting +it is discarded already", again.stdout)
	require.Contains(t, h.twinbox(t, "dlq", "list", "--key", key).stdout, "No dead letters")

	require.NoError(t, os.WriteFile(file, []byte(`{"name":"Ada"}`), 0o600))
	settled := h.twinbox(t, "dlq", "edit", ref, "--payload", file, "--yes", "--reason", "r")
	require.Equal(t, exitRefused, settled.code)
	require.Contains(t, settled.stderr, "not_waiting")
}

type tailed struct {
	Service string
	adminapi.OutboxEvent
}

func (h *stack) tail(t *testing.T, key string, want int) []tailed {
	t.Helper()
	var document struct{ Items []tailed }
	testkit.Until(t, func() bool {
		document.Items = nil
		h.twinbox(t, "outbox", "tail", "--key", key, "--json").json(t, &document)
		published := 0
		for _, e := range document.Items {
			if e.State == "published" {
				published++
			}
		}
		return published >= want
	}, "published events of %s", key)
	return document.Items
}

func TestTraceByWhatPeopleHave(t *testing.T) {
	t.Parallel()
	h := shared(t)
	id := h.signUp(t, "Have@example.org")
	event := h.tail(t, id, 2)[0]
	sent := event.EventID
	var story adminapi.Story
	h.twinbox(t, "trace", sent, "--json").json(t, &story)
	known := []string{"have@example.org", fmt.Sprintf("%s@%d", event.Service, event.Position)}
	for _, s := range story.Steps {
		known = append(known, s.CorrelationID, s.TraceID)
		if s.Station == adminapi.StoryStepStationRecord && s.EventID == sent {
			known = append(known, fmt.Sprintf("%s[%d]@%d", s.Topic, *s.Partition, *s.Offset))
		}
	}
	require.GreaterOrEqual(t, len(known), 5)
	for _, word := range known {
		if word != "" {
			r := h.twinbox(t, "trace", word)
			require.Zero(t, r.code, "%s: %s", word, r.stderr)
			require.Contains(t, r.stdout, sent, word)
		}
	}
	require.Equal(t, exitNotFound, h.twinbox(t, "trace", "nobody@example.org").code)
	require.Equal(t, exitNotFound, h.twinbox(t, "trace", "customer.users.v1[0]@999999").code)
	require.Equal(t, exitNotFound, h.twinbox(t, "trace", "nothing[0]@0").code)
}

func (h *stack) exec(t *testing.T, dsn, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func TestASystemIsVerifiedFromOutside(t *testing.T) {
	t.Parallel()
	h := shared(t)
	h.signUp(t, "verified@example.org")
	var r result
	testkit.Until(t, func() bool {
		r = h.twinbox(t, "verify")
		return r.code == service.ExitOK
	}, "%v", &r)
	report, err := verify.ReadReport(h.dir)
	require.NoError(t, err)
	require.Equal(t, []string{"profiles"}, report["customer"].Checks)
	require.Equal(t, []string{"contacts", "mails"}, report["notification"].Checks)

	dir := t.TempDir()
	args := []string{"verify", "--dir", dir, "--brokers", h.at.KafkaBrokers, "--json"}
	for _, name := range shownServices {
		args = append(args, "--database", name+"="+h.at.Databases[name])
	}
	var given verify.Report
	testkit.Until(t, func() bool {
		r := twinbox(t, args...)
		r.json(t, &given)
		return r.code == service.ExitOK
	})
	for name, verdict := range given {
		require.Len(t, verdict.Consumed, len(report[name].Consumed))
		require.Equal(t, report[name].Checks, verdict.Checks)
		require.NotZero(t, verdict.Produced[0].Published)
	}
	_, err = verify.ReadReport(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "status and the console take it for the folder's system")
}

func TestFollowingWithoutAVerdictFails(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	stderr := &awaited{text: "connect to the database", stop: stop}
	require.Equal(t, service.ExitFailure, run(ctx, []string{
		"verify", "--follow", "--dir", t.TempDir(), "--database", "customer=postgres://127.0.0.1:1/x",
		"--brokers", "127.0.0.1:1",
	}, io.Discard, stderr))
}
