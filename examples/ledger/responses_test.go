package ledger

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// ask is a request, and the service that it goes to.
type ask struct {
	on         *bundle
	path, body string
	headers    []string
}

// Clients are made from the document: a response that is declared and never comes is a branch of theirs that never
// runs. That no other comes is what every request of every test asks.
func TestEveryDeclaredResponseIsGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, events := b.funded(t, 5)
	newConsumer(t, b.pool).deliver(t, events...)
	const accounts, account = "/v1/accounts", "/v1/accounts/{id}"
	mine, nobodys := accounts+"/"+string(id), accounts+"/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	const one = `{"amount":1,"currency":"EUR","expected_version":2}`

	b.holdKey(t, "open", "held")
	asks := map[string]ask{
		"POST " + accounts + " 201": {b, accounts, `{"currency":"EUR"}`, nil},
		"POST " + accounts + " 400": {b, accounts, `{}`, nil},
		"POST " + accounts + " 409": {b, accounts, `{"currency":"EUR"}`, []string{"Idempotency-Key", "held"}},
		"POST " + accounts + " 422": {b, accounts, `{"currency":"XAU"}`, nil},
	}
	for _, way := range []string{"/credits", "/debits"} {
		fresh, _ := b.funded(t, 5)
		maps.Copy(asks, map[string]ask{
			"POST " + account + way + " 200": {b, accounts + "/" + string(fresh) + way, one, nil},
			"POST " + account + way + " 400": {b, mine + way, `{}`, nil},
			"POST " + account + way + " 404": {b, nobodys + way, one, nil},
			"POST " + account + way + " 409": {b, mine + way, `{"amount":1,"currency":"EUR","expected_version":1}`, nil},
			"POST " + account + way + " 422": {b, mine + way, `{"amount":0,"currency":"EUR","expected_version":2}`, nil},
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		maps.Copy(asks, map[string]ask{
			method + " " + account + " 200": {b, mine, "", nil},
			method + " " + account + " 304": {b, mine, "", []string{"If-None-Match", `"2"`}},
			method + " " + account + " 400": {b, accounts + "/42", "", nil},
			method + " " + account + " 404": {b, nobodys, "", nil},
		})
	}
	faulty(t, asks, map[string]ask{
		"POST " + accounts:             {path: accounts, body: `{"currency":"EUR"}`},
		"POST " + account + "/credits": {path: mine + "/credits", body: one},
		"POST " + account + "/debits":  {path: mine + "/debits", body: one},
		"GET " + account:               {path: mine},
		"HEAD " + account:              {path: mine},
	}, b)

	declared, err := document()
	require.NoError(t, err)
	require.ElementsMatch(t, declared.Responses(), slices.Collect(maps.Keys(asks)))
	for name, q := range asks {
		parts := strings.Fields(name) // method, path, status
		a := q.on.do(t, parts[0], q.path, q.body, q.headers...)
		require.Equal(t, parts[2], strconv.Itoa(a.status), "%s: %s", name, a.body)
	}
}

// holdKey makes another request work under the key until the test ends.
func (b *bundle) holdKey(t *testing.T, scope, key string) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) })
	_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`, scope, key)
	require.NoError(t, err)
}

// faulty adds what each operation answers to a good request when the client has used its share, when there is a defect
// or no database, and to the same body when it is late, too long or of another kind.
func faulty(t *testing.T, asks, good map[string]ask, healthy *bundle) {
	t.Helper()
	limited := setupOn(t, healthy.pool, Config{RateLimit: 1})
	require.Equal(t, http.StatusNotFound, limited.do(t, http.MethodGet, "/v2", "").status, "the only one that is allowed")
	broken := setup(t)
	_, err := broken.pool.Exec(t.Context(), `drop table account, account_balance cascade`)
	require.NoError(t, err)
	away := setupOn(t, unreachable(t, healthy.pool), Config{})
	for operation, a := range good {
		asks[operation+" 429"] = ask{limited, a.path, a.body, nil}
		asks[operation+" 500"] = ask{broken, a.path, a.body, nil}
		asks[operation+" 503"] = ask{away, a.path, a.body, nil}
		if a.body == "" {
			continue
		}
		asks[operation+" 408"] = ask{healthy.late(t), a.path, strings.Repeat(" ", 16<<10) + a.body, nil}
		asks[operation+" 413"] = ask{healthy, a.path, strings.Repeat(" ", 64<<10) + a.body, nil}
		asks[operation+" 415"] = ask{healthy, a.path, a.body, []string{"Content-Type", "text/plain"}}
	}
}

// unreachable is a pool whose server takes no connection.
func unreachable(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	unreachable, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(unreachable.Close)
	return unreachable
}

// late is the service when the time of a body is over as soon as its head has come.
func (b *bundle) late(t *testing.T) *bundle {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now()); err != nil {
			panic(err)
		}
		b.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return &bundle{url: server.URL, client: server.Client()}
}

// The document gives each code its status, and has every code that there is.
func TestTheDocumentHasEachCode(t *testing.T) {
	t.Parallel()
	declared, err := document()
	require.NoError(t, err)
	for code, status := range statuses {
		require.Equal(t, status, declared.Statuses[string(code)], code)
	}
}
