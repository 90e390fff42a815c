package customer

import (
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "30") // each is dozens of transactions
	pgtest.Main(m)
}

type bundle struct {
	pool     *pgxpool.Pool
	commands *Commands
	handler  http.Handler
	*testkit.APIClient
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, Config{})
}

func setupWith(t *testing.T, cfg Config) *bundle {
	t.Helper()
	return setupOn(t, pgtest.New(t, migrations.ForCustomer()...), cfg)
}

var loadContract = sync.OnceValues(contract.Load)

func setupOn(t *testing.T, pool *pgxpool.Pool, cfg Config) *bundle {
	t.Helper()
	events, err := loadContract()
	require.NoError(t, err)
	box, err := outbox.New(outbox.Config{Validate: events.Validate})
	require.NoError(t, err)
	commands := &Commands{
		Pool: pool, Outbox: box, Links: testKey, KeysFor: time.Hour, Timeout: time.Minute,
		Allowances: cfg.allowances(),
	}
	cfg.RequestTimeout = time.Minute
	handler := newHandler(&api{commands}, cfg, nil, nil, slog.New(slog.DiscardHandler))
	declared, err := document()
	require.NoError(t, err)
	return &bundle{pool, commands, handler, testkit.ServeAPI(t, handler, declared)}
}

var testKey = domain.VerificationKey(strings.Repeat("k", 32))

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func (b *bundle) stored(t *testing.T) [3]int {
	t.Helper()
	return [3]int{
		b.count(t, `select count(*) from users`),
		b.count(t, `select count(*) from outbox`),
		b.count(t, `select count(*) from idempotency_key`),
	}
}

type answer struct{ testkit.Answer }

func (a answer) requireProblem(t *testing.T, status int, code string, of ...string) {
	t.Helper()
	require.Equal(t, status, a.Status, "%s %s", of, a.Body)
	require.Equal(t, code, a.Code(t), of)
}

func (b *bundle) do(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	return answer{b.Do(t, method, path, body, headers...)}
}

func (b *bundle) signUp(t *testing.T, key, email, name string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "name": name})
	require.NoError(t, err)
	return b.do(t, http.MethodPost, "/v1/signups", string(body), "Idempotency-Key", key)
}

func (b *bundle) registered(t *testing.T) domain.UserID {
	t.Helper()
	a := b.signUp(t, "k1", "ada@example.org", "Ada")
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	id, err := domain.ParseUserID(a.JSON(t)["user_id"].(string))
	require.NoError(t, err)
	return id
}

func mustEmail(t *testing.T, text string) domain.Email {
	t.Helper()
	email, err := domain.ParseEmail(text)
	require.NoError(t, err)
	return email
}
