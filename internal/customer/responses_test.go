package customer

import (
	"context"
	"fmt"
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

	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/internal/domain"
)

// ask is a request, and the service that it goes to.
type ask struct {
	on         *bundle
	path, body string
	headers    []string
}

// faulty adds what each operation answers to a good request when the client has used its share, when there is a defect
// or no database, and to the same body when it is late, too long or of another kind.
func faulty(t *testing.T, asks, good map[string]ask, healthy *bundle) {
	t.Helper()
	limited := setupWith(t, Config{RateLimit: 1})
	require.Equal(t, http.StatusNotFound, limited.do(t, http.MethodGet, "/v2", "").status, "the only one that is allowed")
	broken := setup(t)
	_, err := broken.pool.Exec(t.Context(), `drop table users, profile cascade`)
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

// late is the service when the time of a body is over as soon as its head has come. What came with the head, up to
// 4 KiB, it still sees.
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

// Clients are made from the document: a response that is declared and never comes is a branch of theirs that never
// runs. That no other comes is what requireDeclared asks of every test.
func TestEveryDeclaredResponseIsGiven(t *testing.T) {
	t.Parallel()
	const signups, customer, verifications = "/v1/signups", "/v1/customers/{id}", "/v1/verifications"
	b := setup(t)
	ada := b.registered(t)
	grace := b.signUp(t, "k2", "grace@example.org", "Grace").json(t)["user_id"].(string)
	require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(),
		domain.UserRegistered{UserID: ada, Email: "ada@example.org", Name: "Ada", RegisteredAt: now()}, 1))
	token := b.token(t, ada, "ada@example.org", time.Now().Add(time.Hour))
	expired := b.token(t, ada, "ada@example.org", time.Now().Add(-time.Hour))
	signup := func(email, name string) string { return fmt.Sprintf(`{"email":%q,"name":%q}`, email, name) }
	rename := func(name string, version int) string {
		return fmt.Sprintf(`{"name":%q,"expected_version":%d}`, name, version)
	}
	verify := func(token string) string { return fmt.Sprintf(`{"token":%q}`, token) }
	adas, graces, nobodys := "/v1/customers/"+string(ada), "/v1/customers/"+grace, "/v1/customers/"+string(someone)
	form := []string{"Content-Type", formType, "Accept", browserAccept}

	asks := map[string]ask{
		"POST " + signups + " 201": {b, signups, signup("edith@example.org", "Edith"), nil},
		"POST " + signups + " 400": {b, signups, `{}`, nil},
		"POST " + signups + " 409": {b, signups, signup("ada@example.org", "Ada"), nil},
		"POST " + signups + " 422": {b, signups, signup("ada", "Ada"), nil},

		"PATCH " + customer + " 200": {b, graces, rename("Hopper", 1), nil},
		"PATCH " + customer + " 400": {b, graces, `{}`, nil},
		"PATCH " + customer + " 404": {b, nobodys, rename("Hopper", 1), nil},
		"PATCH " + customer + " 409": {b, graces, rename("Hopper", 7), nil},
		"PATCH " + customer + " 412": {b, graces, rename("Hopper", 1), []string{"If-Match", `"7"`}},
		"PATCH " + customer + " 422": {b, graces, rename("", 1), nil},

		"POST " + verifications + " 200 application/json": {b, verifications, verify(token), nil},
		"POST " + verifications + " 200 text/html":        {b, verifications, "token=" + token, form},
		"POST " + verifications + " 400":                  {b, verifications, `{}`, nil},
		"POST " + verifications + " 410":                  {b, verifications, verify(expired), nil},
		"POST " + verifications + " 422":                  {b, verifications, verify("x"), nil},
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		maps.Copy(asks, map[string]ask{
			method + " " + customer + " 200": {b, adas, "", nil},
			method + " " + customer + " 304": {b, adas, "", []string{"If-None-Match", `"1"`}},
			method + " " + customer + " 400": {b, "/v1/customers/42", "", nil},
			method + " " + customer + " 404": {b, nobodys, "", nil},

			method + " " + verifications + " 200": {b, verifications + "?token=" + token, "", nil},
			method + " " + verifications + " 400": {b, verifications, "", nil},
			method + " " + verifications + " 410": {b, verifications + "?token=" + expired, "", nil},
			method + " " + verifications + " 422": {b, verifications + "?token=x", "", nil},
		})
	}
	faulty(t, asks, map[string]ask{
		"POST " + signups:       {path: signups, body: signup("edith@example.org", "Edith")},
		"GET " + customer:       {path: adas},
		"HEAD " + customer:      {path: adas},
		"PATCH " + customer:     {path: graces, body: rename("Hopper", 1)},
		"POST " + verifications: {path: verifications, body: verify(token)},
		"GET " + verifications:  {path: verifications + "?token=" + token},
		"HEAD " + verifications: {path: verifications + "?token=" + token},
	}, b)

	declared, err := document()
	require.NoError(t, err)
	require.ElementsMatch(t, declared.Responses(), slices.Collect(maps.Keys(asks)))
	for name, q := range asks {
		parts := strings.Fields(name) // method, path, status, and the form where there are several
		a := q.on.do(t, parts[0], q.path, q.body, q.headers...)
		require.Equal(t, parts[2], strconv.Itoa(a.status), "%s: %s", name, a.body)
		if len(parts) > 3 {
			require.Contains(t, a.header.Get("Content-Type"), parts[3], name)
		}
	}
}
