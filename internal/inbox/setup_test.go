package inbox_test

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafkatest"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/migrations"
)

// Tests with a database wait more than they compute, so eight run side by side unless -parallel says otherwise; the
// command line is parsed later.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...)
}

// bundle is a database with the inbox and a ledger of effects. The ledger has no unique constraint: what counts
// effects must not be able to prevent one.
type bundle struct {
	pool     *pgxpool.Pool
	cfg      inbox.Config
	registry *prometheus.Registry
	today    time.Time // of atNoon
}

func setup(t *testing.T) *bundle {
	t.Helper()
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	_, err := pool.Exec(t.Context(), `create table ledger (n bigint generated always as identity, event_id text)`)
	require.NoError(t, err)
	return newBundle(pool)
}

func newBundle(pool *pgxpool.Pool) *bundle {
	registry := prometheus.NewRegistry()
	return &bundle{pool: pool, registry: registry, cfg: inbox.Config{
		Consumer:       "test",
		Pool:           pool,
		HandlerTimeout: waitLimit, // no handler is late because the machine stood still
		RetryMin:       time.Millisecond,
		RetryMax:       2 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
		Registerer:     registry,
	}}
}

// again is the bundle as [setup] made it, for tests that follow one another in one database: all rows are gone.
func (b *bundle) again(t *testing.T) *bundle {
	t.Helper()
	for _, table := range []string{
		"ledger", "dead_letter", "inbox", "inbox_watermark", "inbox_passed", "inbox_owner", "inbox_attempt", "inbox_horizon",
	} {
		b.exec(t, "delete from "+table)
	}
	b.exec(t, `insert into inbox_horizon default values`)
	return newBundle(b.pool)
}

func (b *bundle) inbox(t *testing.T) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(b.cfg)
	require.NoError(t, err)
	return in
}

// deliver runs one message through the middleware and a Mux with the handler, as a Router would.
func (b *bundle) deliver(t *testing.T, msg *message.Message, handler handlerFunc) error {
	t.Helper()
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, handler)
	return deliver(b.inbox(t), mux, msg)
}

func deliver(in *inbox.Inbox, mux *inbox.Mux, msg *message.Message) error {
	_, err := in.Middleware(func(m *message.Message) ([]*message.Message, error) { return nil, mux.HandlerFunc(m) })(msg)
	return err
}

const testType = "com.example.test.v1"

var testEvent = cloudevent.Define[testData](cloudevent.Declaration{Type: testType})

type testData struct {
	Value string `json:"value"`
}

type handlerFunc func(ctx context.Context, tx pgx.Tx, event cloudevent.Event, data testData) error

// effect is the handler that does something countable.
func effect(ctx context.Context, tx pgx.Tx, event cloudevent.Event, _ testData) error {
	_, err := tx.Exec(ctx, `insert into ledger (event_id) values ($1)`, event.ID)
	return err
}

// effects is how often the event had its effect.
func (b *bundle) effects(t *testing.T, eventID string) int {
	t.Helper()
	return b.count(t, `select count(*) from ledger where event_id = $1`, eventID)
}

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func newEvent() cloudevent.Event {
	return cloudevent.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/test", Type: testType, Key: "key-1",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{"value":"a"}`),
	}
}

// record is the event as a subscriber hands it over.
func record(t *testing.T, e cloudevent.Event, offset int64) *message.Message {
	t.Helper()
	m := e.Message()
	m.SetContext(cloudevent.WithOrigin(t.Context(), cloudevent.Origin{
		Group: "local.test", Topic: "topic-1", Partition: 2, Offset: offset, Time: e.Time,
		Key:     []byte(e.Key),
		Headers: []cloudevent.Header{{Name: "x", Value: []byte("1")}, {Name: "x", Value: []byte{0xff, 0x00}}},
	}))
	return m
}

func orderEvent() cloudevent.Event {
	return cloudevent.Event{
		ID: "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", Source: "/shop", Type: "com.example.order-placed.v1", Key: "42",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{"total":99}`),
	}
}
