package hello

import (
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestEachResponseOfTheDocumentIsGiven(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	document, err := testkit.ParseOpenAPI(content)
	require.NoError(t, err)
	checker, err := contract.Load()
	require.NoError(t, err)
	handler := func(pool *pgxpool.Pool) http.Handler {
		g := &greeter{outbox: outboxtest.Checked(t, checker.Validate), word: "Welcome"}
		a := &api{greeter: g, transaction: command.Transaction{Pool: pool, Timeout: time.Minute}}
		return newHandler(a, web.Config{RequestTimeout: time.Minute}, slog.New(slog.DiscardHandler))
	}
	pool, broken := pgtest.New(t, Migrations()...), pgtest.New(t) // broken has no tables
	healthy := testkit.ServeAPI(t, handler(pool), document)
	asks := map[string]testkit.Ask{
		"POST /v1/greetings 201": healthy.Ask("/v1/greetings", `{"name":"Ada"}`),
		"POST /v1/greetings 400": healthy.Ask("/v1/greetings", `{}`),
		"POST /v1/greetings 422": healthy.Ask("/v1/greetings", `{"name":" "}`),
	}
	testkit.FaultyAPI{
		Healthy: healthy, Broken: testkit.ServeAPI(t, handler(broken), document),
		Away: testkit.ServeAPI(t, handler(pgtest.Unreachable(t)), document),
		Late: testkit.ServeAPILate(t, handler(pool), document),
	}.Add(t, asks, map[string]testkit.Ask{
		"POST /v1/greetings": {Path: "/v1/greetings", Body: `{"name":"Ada"}`},
	})
	document.RequireEach(t, asks)
}
