package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

var changing = map[string][]string{
	"dlq replay":              {"--consumer", "c"},
	"dlq edit":                {"1", "--header", "a=b"},
	"dlq discard":             {"--consumer", "c"},
	"mail retry":              {anID},
	"mail mark-sent":          {anID},
	"mail skip":               {anID},
	"consumer pause":          {"c"},
	"consumer resume":         {"c"},
	"outbox republish":        {"--key", "k"},
	"outbox release":          {"--topic", "t", "--key", "k"},
	"outbox pause":            {},
	"outbox resume":           {},
	"outbox confirm":          {"events_unknown"},
	"outbox scheduled cancel": {"name"},
	"call":                    {"pauseRelay"},
}

// commandsWith finds commands that are added later.
func commandsWith(t *testing.T, flag string) (commands []string) {
	t.Helper()
	parser, err := kong.New(&Commands{}, kong.BindTo(context.Background(), (*context.Context)(nil)))
	require.NoError(t, err)
	for _, command := range parser.Model.Leaves(true) {
		for _, f := range command.Flags {
			if f.Name == flag {
				commands = append(commands, strings.TrimPrefix(command.Path(), "twinbox "))
			}
		}
	}
	return commands
}

func TestAStrangerIsChangedNothing(t *testing.T) {
	t.Parallel()
	commands := commandsWith(t, "yes")
	require.Len(t, commands, len(changing))
	for _, command := range commands {
		var mu sync.Mutex
		asked := map[string]int{}
		stranger := listener(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[strings.TrimPrefix(r.URL.Path, "/admin/v1/")]++
			w.WriteHeader(http.StatusMisdirectedRequest)
			_, _ = io.WriteString(w, `{"code":"wrong_service","status":421,"detail":"This is notification."}`)
		})
		require.Contains(t, changing, command)
		args := append(strings.Fields(command), changing[command]...)
		r := at(t, stranger, "", append(args, "--yes", "--reason", "r", "--json")...)
		require.Equal(t, exitRefused, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, "customer: This is notification.", command)
		var document failureDocument
		r.json(t, &document)
		require.Equal(t, "wrong_service", document.Error.Code)
		delete(asked, "dead-letters/show") // is only looked at
		require.Equal(t, map[string]int{"service": 1}, asked, command)
	}
}

func TestTheEnvironmentThatIsMeant(t *testing.T) {
	t.Parallel()
	in := func(service, environment string) (addr string, changes func() int) {
		n := 0
		addr = listener(t, func(w http.ResponseWriter, r *http.Request) {
			if meant := r.Header.Get("Twinbox-Environment"); meant != "" && meant != environment {
				w.WriteHeader(http.StatusMisdirectedRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{
					"code": "wrong_environment", "status": 421, "detail": "This is another one.",
				})
				return
			}
			if strings.HasSuffix(r.URL.Path, "/service") {
				says(`{"name":"`+service+`","environment":"`+environment+`"}`)(w, r)
				return
			}
			if r.Header.Get("Twinbox-Environment") == environment {
				n++
			}
			says(`{"result":{"dry_run":false,"count":1,"failed":0}}`)(w, r)
		})
		return addr, func() int { return n }
	}
	customer, changed := in("customer", "production")
	notification, alsoChanged := in("notification", "staging")
	replay := []string{"dlq", "replay", "--all", "--yes", "--reason", "r"}
	r := at(t, customer, notification, replay...)
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.stderr, "customer is in the environment production, but notification in staging")
	r = at(t, customer, "", append(replay, "--environment", "staging")...)
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.stderr, "wrong_environment")
	require.Zero(t, changed()+alsoChanged())
	r = at(t, customer, "", replay...)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, 1, changed(), "the change itself says which environment is meant")
}
