package inboxtest_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func failureOf(t *testing.T, of inboxtest.Idempotence) string {
	t.Helper()
	return testkit.FailureText(t, func(t testing.TB) { inboxtest.RequireIdempotent(t, of) })
}

func parcels(
	do func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx, e event.Event) error,
) inboxtest.Idempotence {
	return inboxtest.Idempotence{
		Handlers: func(pool *pgxpool.Pool) inboxtest.Handlers {
			mux := inbox.NewMux()
			inbox.Handle(mux, inboxtest.Event,
				func(ctx context.Context, tx pgx.Tx, e event.Event, _ inboxtest.Data) error {
					return do(ctx, pool, tx, e)
				})
			return mux
		},
		Migrations: []migrations.Set{parcelTable},
		Events: []event.Event{
			inboxtest.Named("id-1", "a"), inboxtest.Named("id-2", "b"),
			inboxtest.Named("id-3", "a"), inboxtest.Named("id-4", "c"),
		},
		Tables: []string{"parcel"}, Except: []string{"parcel.at"},
	}
}

const insertParcel = `insert into parcel (key, sent) values ($1, $2)`

func TestPlainHandlersAreCheckedAsTypedOnesAre(t *testing.T) {
	t.Parallel()
	plain := func(db func(*pgxpool.Pool, context.Context) execer) inboxtest.Idempotence {
		of := parcels(nil)
		of.Handlers = func(pool *pgxpool.Pool) inboxtest.Handlers {
			return inboxtest.Plain(func(msg *message.Message) error {
				_, err := db(pool, msg.Context()).Exec(msg.Context(), insertParcel, "a", 1)
				return err
			}, inboxtest.Type)
		}
		return of
	}
	require.Empty(t, failureOf(t, plain(func(_ *pgxpool.Pool, ctx context.Context) execer {
		tx, _ := inbox.TxFromContext(ctx)
		return tx
	})))
	require.Contains(t, failureOf(t, plain(func(pool *pgxpool.Pool, _ context.Context) execer { return pool })),
		"the handlers are not idempotent")
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func TestAColumnOfTheClockBelongsIntoExcept(t *testing.T) {
	t.Parallel()
	of := parcels(func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e event.Event) error {
		_, err := tx.Exec(ctx, insertParcel, e.Key, 1)
		return err
	})
	of.Except = nil
	require.Contains(t, failureOf(t, of), "a column that may differ into Except")
}

// The handler forgets its state at its end: a failure after it finds nothing.
func TestWhatAHandlerKeepsBetweenTwoStatementsIsFound(t *testing.T) {
	t.Parallel()
	inserted := map[string]bool{}
	text := failureOf(t, parcels(func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e event.Event) error {
		if !inserted[e.ID] {
			if _, err := tx.Exec(ctx, insertParcel, e.Key, 0); err != nil {
				return err
			}
			inserted[e.ID] = true
		}
		_, err := tx.Exec(ctx, `update parcel set sent = 1`)
		if err == nil {
			delete(inserted, e.ID)
		}
		return err
	}))
	require.Equal(t, `the handlers are not idempotent: each event twice, failing behind each statement, 1 in a transaction
table parcel has 0 rows and not 4; the first that differs
  once: {"key": "a", "sent": 1}
  now:  none
A handler's effect belongs into its transaction; a column that may differ into Except.`, text)
}

func TestAnOrderAcrossKeysIsFound(t *testing.T) {
	t.Parallel()
	of := parcels(func(ctx context.Context, _ *pgxpool.Pool, tx pgx.Tx, e event.Event) error {
		_, err := tx.Exec(ctx, `insert into parcel (key, sent) select $1, count(*) from parcel`, e.Key)
		return err
	})
	text := failureOf(t, of)
	require.Equal(t, `the handlers are not idempotent: with other keys in between, 1 in a transaction
table parcel has 4 rows and not 4; the first that differs
  once: {"key": "a", "sent": 2}
  now:  {"key": "a", "sent": 3}
A handler's effect belongs into its transaction; a column that may differ into Except.`, text)
	of.AcrossKeys = true
	require.Empty(t, failureOf(t, of))
}

func TestTablesWithoutRowsAreNoProof(t *testing.T) {
	t.Parallel()
	of := parcels(func(context.Context, *pgxpool.Pool, pgx.Tx, event.Event) error { return nil })
	require.Equal(t, `no table has a row when the events were handled once: ["parcel"]`, failureOf(t, of))
	of.Tables = nil
	require.Equal(t, "name the tables that the handlers write, in Tables; of a handler that only publishes: outbox_key",
		failureOf(t, of))
}

// The handler publishes in a transaction of its own.
func TestAnEventThatIsAddedTwiceIsFound(t *testing.T) {
	t.Parallel()
	out := outboxtest.New(t)
	of := parcels(func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx, e event.Event) error {
		if _, err := tx.Exec(ctx, insertParcel, e.Key, 1); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(own pgx.Tx) error {
			_, err := out.Add(ctx, own, outboxtest.Event(e.Key))
			return err
		})
	})
	of.Migrations = append(of.Migrations, migrations.Outbox)
	require.Contains(t, failureOf(t, of), "table outbox_key has 3 rows and not 3; the first that differs")
}

// An event that the handlers refuse would make all ways alike.
func TestAnEventThatIsGivenUpIsNoProof(t *testing.T) {
	t.Parallel()
	text := failureOf(t, parcels(func(_ context.Context, _ *pgxpool.Pool, _ pgx.Tx, e event.Event) error {
		if e.ID == "id-3" {
			return inbox.Permanent(context.DeadlineExceeded)
		}
		return nil
	}))
	require.Equal(t, `once: not every event was applied: ["event id-3: dead"]`, text)
}
