package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

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
	require.Equal(t, `{"name":"Ada"}`, strings.TrimSpace(removeKept(t, dry)), "a dry run keeps the text")
	require.NotContains(t, h.twinbox(t, "dlq", "show", ref, "--payload").stdout, "edited to")

	done := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":"Ada"}`), "--yes", "--reason", "r")
	require.Zero(t, done.code, done.stderr)
	require.Contains(t, h.twinbox(t, "dlq", "show", ref, "--payload").stdout, `edited to  {"name":"Ada"}`)

	same := h.twinbox(t, "dlq", "edit", ref, "--editor", "true", "--yes", "--reason", "r")
	require.Zero(t, same.code, same.stderr)
	require.Contains(t, same.stderr, "nothing to do")
	broken := h.twinbox(t, "dlq", "edit", ref, "--editor", editor(t, `{"name":`), "--yes", "--reason", "r")
	require.Equal(t, 2, broken.code)
	require.Contains(t, broken.stderr, "not valid JSON")
	removeKept(t, broken)
	failed := h.twinbox(t, "dlq", "edit", ref, "--editor", "false", "--yes", "--reason", "r")
	require.Equal(t, 1, failed.code)
	require.Contains(t, failed.stderr, "run editor")
	removeKept(t, failed)
}

func TestEditHeaders(t *testing.T) {
	t.Parallel()
	h := shared(t)
	ref, key := h.deadLetter(t)
	file := filepath.Join(t.TempDir(), "payload.json")
	registered := `{"user_id":"` + key + `","email":"ada.` + key[:8] + `@example.org","name":"Ada",` +
		`"registered_at":"2026-01-02T03:04:05Z"}`
	require.NoError(t, os.WriteFile(file, []byte(registered), 0o600))
	edit := []string{"dlq", "edit", ref, "--yes", "--reason", "the producer left them out"}
	wrong := h.twinbox(t, append(edit, "--header", "ce_id")...)
	require.Equal(t, 2, wrong.code)
	require.Contains(t, wrong.stderr, "not NAME=VALUE")

	id := uuid.NewString()
	for name, value := range map[string]string{
		"ce_id": id, "ce_source": "/customer", "ce_type": contract.UserRegistered.Type, "ce_specversion": "1.0",
		"ce_time": time.Now().UTC().Format(time.RFC3339), "ce_subject": key, "ce_aggregateversion": "1",
		"content-type": "application/json",
	} {
		edit = append(edit, "--header", name+"="+value)
	}
	done := h.twinbox(t, append(edit, "--payload", file)...)
	require.Zero(t, done.code, done.stderr)
	again := h.twinbox(t, "dlq", "edit", ref, "--header", "x=1", "--yes", "--reason", "r")
	require.Zero(t, again.code, "headers alone, and no editor: %s", again.stderr)
	replayed := h.twinbox(t, "dlq", "replay", ref, "--yes", "--reason", "r")
	require.Zero(t, replayed.code, replayed.stdout)
	require.Contains(t, h.twinbox(t, "inbox", "lookup", id).stdout, "customer.profile")
}

func TestPayloadsAsGiven(t *testing.T) {
	t.Parallel()
	customer := listener(t, answers(map[string]string{
		"dead-letters/17": `{"letter":{"id":17,"payload":"bm8=","edited_payload":"e30="},"history":[]}`,
	}))
	file := filepath.Join(t.TempDir(), "payload.json")
	edit := func(payload string, args ...string) result {
		require.NoError(t, os.WriteFile(file, []byte(payload), 0o600))
		return at(t, customer, "", append([]string{"dlq", "edit", "17", "--yes", "--reason", "r"}, args...)...)
	}
	for says, r := range map[string]result{
		"no such file":           edit("", "--payload", file+"x"),
		"the payload is empty":   edit("", "--payload", file, "--header", "x=1"),
		"no editor":              edit("", "--editor", " "),
		"not valid JSON":         edit("{", "--payload", file),
		`--header "=x" is not N`: edit("{}", "--header", "=x"),
	} {
		require.Equal(t, 2, r.code, "%s: %s", says, r.stderr)
		require.Contains(t, r.stderr, says)
	}
	require.Contains(t, edit("{}", "--payload", file).stderr, "nothing to do", "what was edited before is what it was")
	r := edit("{}", "--payload", file, "--json")
	require.Zero(t, r.code, r.stderr)
	var sum effects
	r.json(t, &sum)
	require.Zero(t, sum.Count)
	require.False(t, sum.DryRun)
}

func removeKept(t *testing.T, r result) (text string) {
	t.Helper()
	_, file, found := strings.Cut(r.stderr, "kept in ")
	require.True(t, found, r.stderr)
	file, _, _ = strings.Cut(file, "\n")
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
	require.Contains(t, h.twinbox(t, "dlq", "list", "--key", key).stdout, "No dead letters")

	require.NoError(t, os.WriteFile(file, []byte(`{"name":"Ada"}`), 0o600))
	settled := h.twinbox(t, "dlq", "edit", ref, "--payload", file, "--yes", "--reason", "r")
	require.Equal(t, exitRefused, settled.code)
	require.Contains(t, settled.stderr, "not_waiting")
}
