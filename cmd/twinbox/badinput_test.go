package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/testkit"
)

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	h := shared(t)
	const uuid = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"unknown command", []string{"dlq", "walk"}, "walk"},
		{"unknown flag", []string{"dlq", "list", "--colour"}, "--colour"},
		{"flag without value", []string{"dlq", "list", "--key"}, "--key"},
		{"flag twice", []string{"dlq", "list", "--key", "a", "--key", "b"}, "--key is given twice"},
		{"flag with nothing", []string{"dlq", "discard", "--consumer", "customer.profile", "--key", ""}, "--key is empty"},
		{"flag with =nothing", []string{"outbox", "tail", "--topic="}, "--topic is empty"},
		{"unknown state", []string{"dlq", "list", "--state", "lost"}, "--state"},
		{"unknown service", []string{"dlq", "list", "--service", "billing"}, "--service"},
		{"time without zone", []string{"dlq", "list", "--since", "2026-11-21T10:00:00"}, "--since"},
		{"no such day", []string{"dlq", "list", "--since", "2026-02-30T10:00:00Z"}, "--since"},
		{
			"time window reversed",
			[]string{"dlq", "list", "--since", "2026-11-21T10:00:00Z", "--until", "2026-11-20T10:00:00Z"},
			"is not after",
		},
		{
			"history of a window reversed",
			[]string{"inbox", "history", "t.v1", "--since", "2026-11-21T10:00:00Z", "--until", "2026-11-21T10:00:00Z"},
			"is not after",
		},
		{
			"replay of a window reversed",
			[]string{"dlq", "replay", "--since", "2026-11-21T10:00:00Z", "--until", "2026-11-20T10:00:00Z"},
			"is not after",
		},
		{
			"republish of a window reversed",
			[]string{"outbox", "republish", "--since", "2026-11-21T10:00:00Z", "--until", "2026-11-20T10:00:00Z"},
			"is not after",
		},
		{"a page of two", []string{"dlq", "list", "--each", "--after", "3"}, "--service"},
		{"a service without mails", []string{"mail", "list", "--service", "customer"}, "send no mails"},
		{"edit without reason", []string{"dlq", "edit", "customer/1", "--yes"}, "--reason"},
		{"release without reason", []string{"outbox", "release", "--topic", "t", "--key", "k", "--yes"}, "--reason"},
		{"mail without reason", []string{"mail", "retry", uuid, "--yes"}, "--reason"},
		{"bare id", []string{"dlq", "show", "17"}, "customer/17"},
		{"no id", []string{"dlq", "show", "customer/x"}, "no id of a dead letter"},
		{"alias of an id", []string{"dlq", "show", "customer/017"}, "no id of a dead letter"},
		{"negative id", []string{"dlq", "show", "customer/-1"}, "no id of a dead letter"},
		{"huge id", []string{"dlq", "show", "customer/9223372036854775808"}, "no id of a dead letter"},
		{"an unknown service's id", []string{"dlq", "show", "billing/1"}, "no service"},
		{"everything without --all", []string{"dlq", "replay"}, "--all"},
		{"--all and a filter", []string{"dlq", "replay", "--all", "--key", "k"}, "--all goes with"},
		{"discard everything", []string{"dlq", "discard"}, "say which"},
		{"--yes without reason", []string{"dlq", "replay", "--all", "--yes"}, "--reason"},
		{"blank reason", []string{"dlq", "replay", "--all", "--yes", "--reason", " "}, "--reason"},
		{"negative rate", []string{"dlq", "replay", "--all", "--rate=-1"}, "rate is out of its range"},
		{"republish nothing", []string{"outbox", "republish"}, "nothing selected"},
		{"positions of two", []string{"outbox", "republish", "--from", "1"}, "--service"},
		{"alias of an event", []string{"outbox", "republish", "--id", strings.ToUpper(uuid)}, "invalid_value"},
		{"mail by number", []string{"mail", "retry", "17"}, "ids/0 shows nothing"},
		{"mail in upper case", []string{"mail", "mark-sent", strings.ToUpper(uuid)}, "malformed"},
		{"limit 0", []string{"outbox", "tail", "-n", "0"}, "limit"},
		{"limit too large", []string{"dlq", "list", "--each", "-n", "1001"}, "limit"},
		{"empty event id", []string{"inbox", "lookup", ""}, "event-id is empty"},
		{"long event id", []string{"inbox", "lookup", strings.Repeat("é", 256)}, "too long"},
		{"empty type", []string{"inbox", "history", ""}, "type is empty"},
		{"long type", []string{"inbox", "history", strings.Repeat("é", 256)}, "too long"},
		{"an export", []string{"dlq", "export"}, "export"},
		{"control characters", []string{"dlq", "replay", "--all", "--yes", "--reason", "a\x1b[2J"}, "control characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plain := h.twinbox(t, c.args...)
			require.Equal(t, service.ExitUsage, plain.code, plain.stderr)
			require.Contains(t, plain.stderr, c.says)
			var document struct {
				Error struct {
					Code, Message string
					Exit          int
				}
			}
			h.twinbox(t, append(c.args, "--json")...).json(t, &document)
			require.Equal(t, service.ExitUsage, document.Error.Exit)
			require.NotEmpty(t, document.Error.Code)
		})
	}
}

func TestNothingFound(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for name, args := range map[string][]string{
		"letter": {"dlq", "show", "customer/999999"},
		"event":  {"inbox", "lookup", "never-came"},
		"long":   {"inbox", "lookup", strings.Repeat("é", 255)},
		"mail":   {"mail", "retry", "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10", "--yes", "--reason", "r"},
		"name":   {"inbox", "history", "none.v1", "--consumer", "customer.profil"},
	} {
		r := h.twinbox(t, args...)
		require.Equal(t, exitNotFound, r.code, "%s: %s", name, r.stderr)
		require.Empty(t, r.stdout)
	}
	for name, args := range map[string][]string{
		"list":    {"dlq", "list", "--key", "none"},
		"replay":  {"dlq", "replay", "--key", "none", "--yes", "--reason", "r"},
		"discard": {"dlq", "discard", "--key", "none", "--yes", "--reason", "r"},
		"future":  {"dlq", "list", "--since", "2199-01-01T00:00:00Z"},
		"history": {"inbox", "history", "none.v1"},
	} {
		r := h.twinbox(t, args...)
		require.Zero(t, r.code, "a filter that matches nothing is no failure: %s: %s", name, r.stderr)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"| head": {syscall.EPIPE, service.ExitOK}, "full disk": {syscall.ENOSPC, service.ExitFailure},
	} {
		for _, args := range [][]string{
			{"outbox", "status"}, {"outbox", "status", "--json"}, {"inbox", "stats"}, {"dlq", "list"}, {"mail", "list"},
		} {
			var stderr bytes.Buffer
			code := run(t.Context(), append(args, "--dir", h.dir), failing{c.err}, &stderr)
			require.Equal(t, c.code, code, "%s: %v: %s", name, args, stderr.String())
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

	one := twinbox(t, "outbox", "status", "--json", "--token-file", tokenFile,
		"--customer-admin", h.at.Services["customer"].Admin, "--notification-admin", gone)
	require.Equal(t, exitPartial, one.code)
	require.Contains(t, one.stderr, "no answer from "+gone)
	var document map[string]json.RawMessage
	one.json(t, &document)
	require.Contains(t, document, "customer", "what the other one says is shown")

	none := twinbox(t, "outbox", "status", "--token-file", tokenFile, "--customer-admin", gone)
	require.Equal(t, service.ExitFailure, none.code)
	require.NotContains(t, none.stderr, h.at.AdminToken.Reveal())

	require.NoError(t, os.WriteFile(tokenFile, []byte("another"), 0o600))
	wrong := twinbox(t, "outbox", "status", "--token-file", tokenFile, "--customer-admin", h.at.Services["customer"].Admin)
	require.Equal(t, exitRefused, wrong.code)
	require.Contains(t, wrong.stderr, "unauthorized")

	missing := twinbox(t, "outbox", "status", "--token-file", tokenFile+"x", "--customer-admin", gone)
	require.Equal(t, service.ExitUsage, missing.code)
}

func TestTheOperatorsFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	h := shared(t)
	path := filepath.Join(h.dir, "operators.json")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	for _, part := range []string{"stack", "customer", "notification"} {
		log, err := os.ReadFile(filepath.Join(h.dir, part+".log"))
		require.NoError(t, err)
		require.NotContains(t, string(log), h.at.AdminToken.Reveal())
	}
}

func TestAServiceThatRunsBeside(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	operators := `{"services":{"customer":"127.0.0.1:1","order":"127.0.0.1:1"},"token":"t"}`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "operators.json"), []byte(operators), 0o600))
	another := twinbox(t, "outbox", "status", "--dir", folder, "--service", "order")
	require.Contains(t, another.stderr, "order")
	require.Equal(t, service.ExitFailure, another.code)
	none := twinbox(t, "outbox", "status", "--dir", folder, "--service", "ordr")
	require.Contains(t, none.stderr, "--service: there is no ordr, but customer, order")
	require.Equal(t, service.ExitUsage, none.code)
}

func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{
		400: service.ExitUsage, 422: service.ExitUsage, 404: exitNotFound, 401: exitRefused, 403: exitRefused,
		409: exitRefused, 410: exitRefused, 413: service.ExitFailure, 500: service.ExitFailure, 503: service.ExitFailure,
	} {
		problem := &client.ProblemError{Problem: adminapi.Problem{Status: status}}
		require.Equal(t, want, exitCode(fmt.Errorf("edit: %w", problem)), status)
	}
	require.Equal(t, 0, exitCode(nil))
	require.Equal(t, 1, exitCode(errors.New("x")))
	require.Equal(t, 5, exitCode(partial(errors.New("x"))))
	require.Equal(t, 1, exitCode(&client.UnreachableError{Err: syscall.EPIPE}), "a service is gone")
	require.Equal(t, 5, exitCode(partial(&client.UnreachableError{Err: syscall.EPIPE})))
}
