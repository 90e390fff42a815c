package ledger

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "40") // each is dozens of transactions; the command line may set more
	kafkatest.Main(m)
}

type bundle struct {
	pool     *pgxpool.Pool
	commands *Commands
	handler  http.Handler
	*testkit.APIClient
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupOn(t, pgtest.New(t, Migrations()...))
}

// setupOn accepts a database that may be away.
func setupOn(t *testing.T, pool *pgxpool.Pool) *bundle {
	t.Helper()
	events, err := contract.Load()
	require.NoError(t, err)
	box, err := outbox.New(outbox.Config{Validate: events.Validate})
	require.NoError(t, err)
	commands := &Commands{
		Transaction: command.Transaction{Pool: pool, Timeout: time.Minute},
		Outbox:      box, KeysFor: time.Hour, Attempts: 1000,
	}
	handler := newHandler(commands, web.Config{RequestTimeout: time.Minute}, slog.New(slog.DiscardHandler))
	declared, err := document()
	require.NoError(t, err)
	return &bundle{pool, commands, handler, testkit.ServeAPI(t, handler, declared)}
}

func (b *bundle) count(t require.TestingT, sql string, args ...any) (n int64) {
	require.NoError(t, b.pool.QueryRow(background, sql, args...).Scan(&n))
	return n
}

func (b *bundle) stored(t *testing.T) [3]int64 {
	t.Helper()
	return [3]int64{
		b.count(t, `select count(*) from account`),
		b.count(t, `select count(*) from outbox`),
		b.count(t, `select count(*) from idempotency_key`),
	}
}

type answer struct{ testkit.Answer }

var document = sync.OnceValues(func() (*testkit.OpenAPI, error) {
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return testkit.ParseOpenAPI(data)
})

func (b *bundle) do(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	return answer{b.Do(t, method, path, body, headers...)}
}

func (b *bundle) opened(t *testing.T) account.ID {
	t.Helper()
	a := b.do(t, http.MethodPost, "/v1/accounts", `{"currency":"EUR"}`)
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	id, err := account.ParseID(a.JSON(t)["account_id"].(string))
	require.NoError(t, err)
	require.Equal(t, "/v1/accounts/"+string(id), a.Header.Get("Location"))
	return id
}

func (b *bundle) move(t *testing.T, id account.ID, what string, amount int64, more string, headers ...string) answer {
	t.Helper()
	body := fmt.Sprintf(`{"amount":%d,"currency":"EUR"%s}`, amount, more)
	return b.do(t, http.MethodPost, "/v1/accounts/"+string(id)+"/"+what, body, headers...)
}

func (a answer) requireState(t *testing.T, balance, version int64) {
	t.Helper()
	require.Less(t, a.Status, 300, string(a.Body))
	document := a.JSON(t)
	require.EqualValues(t, balance, document["balance"])
	require.EqualValues(t, version, document["version"])
}

// requireWritten compares the write side with the commands.
func (b *bundle) requireWritten(t require.TestingT, id account.ID, balance, version int64) {
	require.Equal(t, balance, b.count(t, `select balance from account where id = $1`, string(id)))
	require.Equal(t, version, b.count(t, `select version from outbox_key where key = $1`, string(id)))
	require.Equal(t, version, b.count(t, `select count(*) from outbox where key = $1`, string(id)))
	require.Equal(t, version, b.count(t, `select max(version) from outbox where key = $1`, string(id)))
}

const selectPublished = `
select event_id::text, event_type, source, topic, key, version, coalesce(data_schema, ''), occurred_at, payload
from outbox where key = any ($1) order by key, version`

func (b *bundle) published(t require.TestingT, ids ...account.ID) []event.Event {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = string(id)
	}
	rows, err := b.pool.Query(background, selectPublished, keys)
	require.NoError(t, err)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		return e, row.Scan(&e.ID, &e.Type, &e.Source, &e.Topic, &e.Key, &e.Version, &e.DataSchema, &e.Time, &e.Data)
	})
	require.NoError(t, err)
	return events
}
