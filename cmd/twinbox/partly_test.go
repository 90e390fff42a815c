package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

type failureDocument struct {
	Error struct {
		Code string
		Exit int
	}
}

func TestOneOfTwoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	customer := listener(t, answers(map[string]string{
		"service": `{}`, "inbox/events": `{"items":[]}`, "inbox/history": `{"items":[]}`,
		"dead-letters/query":  `{"items":[]}`,
		"dead-letters/groups": `{"items":[]}`, "outbox/events": `{"items":[]}`,
	}))
	notification := listener(t, answers(nil))
	for _, args := range [][]string{
		{"inbox", "lookup", "e"},
		{"inbox", "history", "t.v1"},
		{"dlq", "list"},
		{"dlq", "list", "--each"},
		{"outbox", "tail"},
	} {
		r := at(t, customer, notification, append(args, "--json")...)
		require.Equal(t, exitPartial, r.code, "%v: %s", args, r.stderr)
		require.Contains(t, r.stderr, "notification: no (unavailable)")
		var document struct {
			Items   []any
			Unknown map[string]string
		}
		r.json(t, &document)
		require.NotNil(t, document.Items, "%v: %s", args, r.stdout)
		require.Equal(t, "notification: no (unavailable)", document.Unknown["notification"], args)
		text := at(t, customer, notification, args...)
		require.Equal(t, exitPartial, text.code, args)
		require.Contains(t, text.stdout, "notification: unknown, no (unavailable)", "it is not that all is well")
		require.NotContains(t, text.stdout, "No dead letters.\n")
	}
	for _, args := range [][]string{
		{"mail", "list"},
		{"mail", "retry", "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10", "--yes", "--reason", "r"},
	} {
		r := at(t, customer, notification, append(args, "--json")...)
		require.Equal(t, service.ExitFailure, r.code, "%v: nothing is done, not a part", args)
		var document failureDocument
		r.json(t, &document)
		require.Equal(t, "unavailable", document.Error.Code)
		require.Equal(t, service.ExitFailure, document.Error.Exit)
	}
}

func TestWhoHasIt(t *testing.T) {
	t.Parallel()
	other := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_parked","status":404,"detail":"This key is not parked."}`)
	})
	released := says(`{"dry_run":false,"count":1,"failed":0}`)
	for name, c := range map[string]struct {
		customer, notification http.HandlerFunc
		code                   int
		document               string
	}{
		"both answer, one has it":    {other, released, 0, ""},
		"one is gone, one has it":    {answers(nil), released, 0, ""},
		"no service has it":          {other, other, exitNotFound, "not_parked"},
		"its service is gone":        {other, answers(nil), service.ExitFailure, "unavailable"},
		"its service is first, gone": {answers(nil), other, service.ExitFailure, "unavailable"},
	} {
		r := at(t, listener(t, c.customer), listener(t, c.notification),
			"outbox", "release", "--topic", "t", "--key", "k", "--yes", "--reason", "r", "--json")
		require.Equal(t, c.code, r.code, "%s: %s", name, r.stderr)
		var document failureDocument
		r.json(t, &document)
		require.Equal(t, c.document, document.Error.Code, name)
	}
}

func TestADroppedEventIsNoReleasedKey(t *testing.T) {
	t.Parallel()
	customer := listener(t, says(`{"dry_run":false,"count":1,"failed":0}`))
	release := []string{"outbox", "release", "--topic", "t", "--key", "k", "--yes", "--reason", "r"}
	require.Equal(t, "Released 1 key of customer.\n", at(t, customer, "", release...).stdout)
	require.Equal(t, "Dropped 1 event of customer.\n", at(t, customer, "", append(release, "--drop", "7")...).stdout)
}

func TestDocumentsNameLettersAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	const refused = `{"result":{"dry_run":false,"count":0,"failed":1,` +
		`"errors":[{"subject":"17","code":"c","detail":"d"}]}}` + "\n"
	customer := listener(t, answers(map[string]string{
		"service":              `{}`,
		"dead-letters/show":    `{"letter":{"id":17,"key":"k<"},"history":[{"id":1,"kind":"dead_letter","subject":"17"}]}`,
		"dead-letters/discard": refused,
		"dead-letters/groups":  `{"items":[{"code":"c","example":17}]}`,
		"dead-letters/query":   `{"items":[{"id":17}]}`,
		"inbox/events":         `{"items":[{"outcome":"dead","dead_letter":17},{"outcome":"applied"}]}`,
		"audit":                `{"items":[{"id":1,"kind":"dead_letter","subject":"17"}]}`,
	}))
	for command, paths := range map[string][]string{
		"dlq list":                           {"items.0.example"},
		"dlq list --each":                    {"items.0.ref"},
		"dlq show 17":                        {"letter.ref", "history.0.ref"},
		"dlq discard 17 --yes --reason done": {"errors.0.subject", "services.customer.errors.0.subject"},
		"inbox lookup e":                     {"items.0.dead_letter"},
		"audit":                              {"items.0.ref"},
	} {
		var document any
		r := at(t, customer, "", append(strings.Fields(command), "--json")...)
		r.json(t, &document)
		for _, path := range paths {
			at := document
			for step := range strings.SplitSeq(path, ".") {
				switch parent := at.(type) {
				case map[string]any:
					at = parent[step]
				case []any:
					at = parent[0]
				}
			}
			require.Equal(t, "customer/17", at, "%s: %s in %s", command, path, r.stdout)
		}
		require.NotContains(t, r.stdout, `\u003c`, "as people search for it")
		if command == "inbox lookup e" {
			require.NotContains(t, r.stdout, `"dead_letter": ""`, "what is none has no name")
		}
	}
}
