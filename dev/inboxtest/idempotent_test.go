package inboxtest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/inboxtest"
	"example.com/twinbox/dev/pgtest"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// recorder is a test that keeps what it is failed with.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	text string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.text = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

// failureOf is what the check fails with; "" is nothing.
func failureOf(t *testing.T, of inboxtest.Idempotence) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inboxtest.RequireIdempotent(r, of)
	}()
	<-ended
	return r.text
}

var tables = migrations.Set{Name: "parcel", FS: fstest.MapFS{"0001_parcel.sql": {Data: []byte(
	"-- +goose Up\ncreate table parcel (key text, sent int, at timestamptz default clock_timestamp());\n")}}}

// parcels are handlers that do that for each event.
func parcels(
	do func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx, e cloudevent.Event) error,
) inboxtest.Idempotence {
	return inboxtest.Idempotence{
		Handlers: func(pool *pgxpool.Pool) *inbox.Mux {
			mux := inbox.NewMux()
			inbox.Handle(mux, inboxtest.Event,
				func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, _ inboxtest.Data) error {
					return do(ctx, pool, tx, e)
				})
			return mux
		},
		Migrations: []migrations.Set{tables},
		Events: []cloudevent.Event{
			inboxtest.Named("id-1", "a"), inboxtest.Named("id-2", "b"),
			inboxtest.Named("id-3", "a"), inboxtest.Named("id-4", "c"),
		},
		Tables: []string{"parcel"}, Except: []string{"parcel.at"},
	}
}

const insertParcel = `insert into parcel (key, sent) values ($1, $2)`

func TestAHandlerThatKeepsToItsTransactionIsIdempotent(t *testing.T) {
	t.Parallel()
	require.Empty(t, failureOf(t, parcels(
		func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e cloudevent.Event) error {
			_, err := tx.Exec(ctx, insertParcel, e.Key, 1)
			return err
		})))
}

func TestAWriteBesideTheTransactionIsFound(t *testing.T) {
	t.Parallel()
	text := failureOf(t, parcels(func(ctx context.Context, pool *pgxpool.Pool, _ pgx.Tx, e cloudevent.Event) error {
		_, err := pool.Exec(ctx, insertParcel, e.Key, 1)
		return err
	}))
	require.Equal(t, "the handlers are not idempotent: each event's first attempt failing behind its handler, "+
		`1 in a transaction
table parcel has 8 rows and not 4; the first that differs
  once: {"key": "b", "sent": 1}
  now:  {"key": "a", "sent": 1}
A handler's effect belongs into its transaction; a column that may differ into Except.`, text)
}

func TestWhatAHandlerKeepsForItselfIsFound(t *testing.T) {
	t.Parallel()
	var calls int
	text := failureOf(t, parcels(func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e cloudevent.Event) error {
		calls++
		_, err := tx.Exec(ctx, insertParcel, e.Key, calls)
		return err
	}))
	require.True(t, strings.HasPrefix(text, "the handlers are not idempotent: each event"), text)
	require.Contains(t, text, `once: {"key": "a", "sent": 1}`)
}

func TestAColumnOfTheClockBelongsIntoExcept(t *testing.T) {
	t.Parallel()
	of := parcels(func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e cloudevent.Event) error {
		_, err := tx.Exec(ctx, insertParcel, e.Key, 1)
		return err
	})
	of.Except = nil
	require.Contains(t, failureOf(t, of), "a column that may differ into Except")
}

// An event that the handlers refuse would make all ways alike.
func TestAnEventThatIsGivenUpIsNoProof(t *testing.T) {
	t.Parallel()
	text := failureOf(t, parcels(func(_ context.Context, _ *pgxpool.Pool, _ pgx.Tx, e cloudevent.Event) error {
		if e.ID == "id-3" {
			return inbox.Permanent(context.DeadlineExceeded)
		}
		return nil
	}))
	require.Equal(t, `once: not every event was applied: ["event id-3: dead"]`, text)
}
