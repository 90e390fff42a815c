// Package inboxtest gives tests an inbox and events to deliver to it.
package inboxtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

const WaitLimit = 30 * time.Second

// Bundle is an inbox's configuration on a database. The test makes the table ledger for the effects, without a unique
// constraint that could prevent a second one.
type Bundle struct {
	Pool     *pgxpool.Pool
	Config   inbox.Config
	Host     *Host // in Config
	Registry *prometheus.Registry
}

// On returns a bundle on a database that has the tables of the inbox.
func On(pool *pgxpool.Pool) *Bundle {
	registry, host := prometheus.NewRegistry(), &Host{}
	return &Bundle{Pool: pool, Registry: registry, Host: host, Config: inbox.Config{
		Consumer:       "test",
		Pool:           pool,
		Host:           host,
		HandlerTimeout: WaitLimit, // no handler is late because the machine stood still
		RetryMin:       time.Millisecond,
		RetryMax:       2 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
		Registerer:     registry,
	}}
}

func (b *Bundle) Inbox(t *testing.T) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(b.Config)
	require.NoError(t, err)
	return in
}

// Deliver runs one message through the middleware and a Mux with the handler.
func (b *Bundle) Deliver(t *testing.T, msg *message.Message, handler HandlerFunc) error {
	t.Helper()
	mux := inbox.NewMux()
	inbox.Handle(mux, Event, handler)
	return Deliver(b.Inbox(t), mux, msg)
}

func Deliver(in *inbox.Inbox, mux *inbox.Mux, msg *message.Message) error {
	_, err := in.Middleware(mux.HandleMessage)(msg)
	return err
}

func (b *Bundle) Effects(t *testing.T, eventID string) int {
	t.Helper()
	return b.Count(t, `select count(*) from ledger where event_id = $1`, eventID)
}

// Note returns an effect for [inbox.Inbox.Process].
func (b *Bundle) Note(eventID string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into ledger (event_id) values ($1)`, eventID)
		return err
	}
}

func (b *Bundle) Exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (b *Bundle) Count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// List reads a column of text, empty and not nil without rows.
func (b *Bundle) List(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return append([]string{}, list...)
}

// Host is an [inbox.Host] that may report outcomes, and else does what [inbox.Standalone] does.
type Host struct {
	inbox.Standalone
	OnOutcome func(event.Event, inbox.Outcome)
}

func (h *Host) Handled(e event.Event, outcome inbox.Outcome) {
	if h.OnOutcome != nil {
		h.OnOutcome(e, outcome)
	}
}

const Type = "com.example.test.v1"

var Event = event.Define[Data](event.Declaration{Type: Type})

type Data struct {
	Value string `json:"value"`
}

type HandlerFunc = func(ctx context.Context, tx pgx.Tx, e event.Event, data Data) error

func Effect(ctx context.Context, tx pgx.Tx, e event.Event, _ Data) error {
	_, err := tx.Exec(ctx, `insert into ledger (event_id) values ($1)`, e.ID)
	return err
}

func NewEvent() event.Event {
	return event.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/test", Type: Type, Key: "key-1",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{"value":"a"}`),
	}
}

func Named(id, key string) event.Event {
	e := NewEvent()
	e.ID, e.Key = id, key
	return e
}

// At returns an event whose UUIDv7 has that time.
func At(when time.Time) event.Event {
	e := NewEvent()
	e.ID = IDAt(when)
	return e
}

func IDAt(when time.Time) string {
	u := uuid.Must(uuid.NewV7())
	ms := when.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	return u.String()
}

// Record returns the event as a subscriber hands it over.
func Record(t *testing.T, e event.Event, offset int64) *message.Message {
	t.Helper()
	return record(t.Context(), e, event.Origin{
		Group: "local.test", Topic: "topic-1", Partition: 2, Offset: offset,
		Headers: []event.Header{{Name: "x", Value: []byte("1")}, {Name: "x", Value: []byte{0xff, 0x00}}},
	})
}
