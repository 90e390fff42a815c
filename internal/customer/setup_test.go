package customer

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bundle is the service without its broker: commands and API on a database of their own.
type bundle struct {
	pool     *pgxpool.Pool
	commands *Commands
	handler  http.Handler
	url      string
	client   *http.Client
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, Config{})
}

// setupWith is setup with limits.
func setupWith(t *testing.T, cfg Config) *bundle {
	t.Helper()
	return setupOn(t, pgtest.New(t, migrations.ForCustomer()...), cfg)
}

// setupOn is setupWith on a given database, which may be away.
func setupOn(t *testing.T, pool *pgxpool.Pool, cfg Config) *bundle {
	t.Helper()
	events, err := contract.Load()
	require.NoError(t, err)
	box, err := outbox.New(outbox.Config{Validate: events.Validate})
	require.NoError(t, err)
	commands := &Commands{
		Pool: pool, Outbox: box, Links: testKey, KeysFor: time.Hour, Timeout: time.Minute,
		Allowances: cfg.allowances(),
	}
	cfg.RequestTimeout = time.Minute
	handler, err := newHandler(&api{commands: commands, profiles: pool}, cfg, nil, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &bundle{pool: pool, commands: commands, handler: handler, url: server.URL, client: server.Client()}
}

var testKey = domain.VerificationKey(strings.Repeat("k", domain.MinSecretBytes))

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// stored is how many users, events and kept answers there are.
func (b *bundle) stored(t *testing.T) [3]int {
	t.Helper()
	return [3]int{
		b.count(t, `select count(*) from users`),
		b.count(t, `select count(*) from outbox`),
		b.count(t, `select count(*) from idempotency_key`),
	}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), string(a.body))
	var problem struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	require.NoError(t, json.Unmarshal(a.body, &problem))
	require.Equal(t, a.status, problem.Status)
	return problem.Code
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var document map[string]any
	require.NoError(t, json.Unmarshal(a.body, &document), string(a.body))
	return document
}

func (b *bundle) do(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var read bytes.Buffer
	_, err = io.Copy(&read, resp.Body)
	require.NoError(t, err)
	requireDeclared(t, req, resp, read.Bytes())
	return answer{resp.StatusCode, resp.Header, read.Bytes()}
}

func (b *bundle) signUp(t *testing.T, key, email, name string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "name": name})
	require.NoError(t, err)
	return b.do(t, http.MethodPost, "/v1/signups", string(body), "Idempotency-Key", key)
}

// registered signs a user up and returns their id.
func (b *bundle) registered(t *testing.T) domain.UserID {
	t.Helper()
	a := b.signUp(t, "k1", "ada@example.org", "Ada")
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	id, err := domain.ParseUserID(a.json(t)["user_id"].(string))
	require.NoError(t, err)
	return id
}

func mustEmail(t *testing.T, text string) domain.Email {
	t.Helper()
	email, err := domain.ParseEmail(text)
	require.NoError(t, err)
	return email
}
