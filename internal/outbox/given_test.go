package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

var writers = map[string]func(context.Context, *Outbox, pgx.Tx, event.Event) error{
	"add": func(ctx context.Context, o *Outbox, tx pgx.Tx, e event.Event) error {
		_, err := o.Add(ctx, tx, e)
		return err
	},
	"add beside others": func(ctx context.Context, o *Outbox, tx pgx.Tx, e event.Event) error {
		_, err := o.Add(ctx, tx, newEvent("beside"), e)
		return err
	},
	"queue": func(ctx context.Context, o *Outbox, tx pgx.Tx, e event.Event) error {
		batch := &pgx.Batch{}
		if err := o.Queue(ctx, batch, e); err != nil {
			return err
		}
		batch.Queue(`select 1`)
		return tx.SendBatch(ctx, batch).Close()
	},
	"publisher": func(ctx context.Context, o *Outbox, tx pgx.Tx, e event.Event) error {
		p, err := o.Publisher(ctx, tx)
		if err != nil {
			return err
		}
		sent := e
		sent.Time, sent.Source = time.Now(), "/test"
		return p.Publish(e.Topic, sent.Message())
	},
	"event bus": func(ctx context.Context, o *Outbox, tx pgx.Tx, e event.Event) error {
		bus, err := o.EventBus(ctx, tx)
		if err != nil {
			return err
		}
		return bus.Publish(ctx, e)
	},
}

func givenEvent() event.Event {
	e := newEvent("k")
	e.ID, e.Source = uuid.NewString(), "/test"
	return e
}

var others = map[string]func(*event.Event){
	"payload": func(e *event.Event) { e.Data = []byte(`{"n":2}`) },
	"key":     func(e *event.Event) { e.Key = "another" },
	"type":    func(e *event.Event) { e.Type = "test.other.v1" },
	"topic":   func(e *event.Event) { e.Topic = "other.events.v1" },
	"source":  func(e *event.Event) { e.Source = "/elsewhere" },
	"version": func(e *event.Event) { e.Version = 2 },
}

func inTx(t *testing.T, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, fn)
}

func requireIDConflict(t *testing.T, err error) {
	t.Helper()
	var refused *EventError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, CodeIDConflict, refused.Code)
}

func TestAnIDBelongsToOneEvent(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for writer, add := range writers {
		for what, change := range others {
			if writer == "publisher" && what == "source" {
				continue // the test's publisher names its own
			}
			t.Run(writer+", another "+what, func(t *testing.T) {
				first := givenEvent()
				second := first
				change(&second)
				require.NoError(t, inTx(t, pool, func(tx pgx.Tx) error { return add(t.Context(), o, tx, first) }))
				before := number(t, pool, `select count(*) from outbox`)

				requireIDConflict(t, inTx(t, pool, func(tx pgx.Tx) error { return add(t.Context(), o, tx, second) }))
				require.Equal(t, before, number(t, pool, `select count(*) from outbox`), "nothing of the call is there")
			})
		}
		t.Run(writer+", within one transaction", func(t *testing.T) {
			first := givenEvent()
			second := first
			second.Data = []byte(`{"n":2}`)
			requireIDConflict(t, inTx(t, pool, func(tx pgx.Tx) error {
				require.NoError(t, add(t.Context(), o, tx, first))
				return add(t.Context(), o, tx, second)
			}))
		})
	}
}

func TestTheSameEventAgainAddsNothing(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for writer, add := range writers {
		t.Run(writer, func(t *testing.T) {
			e := givenEvent()
			e.Key = writer
			for range 2 {
				require.NoError(t, inTx(t, pool, func(tx pgx.Tx) error {
					for range 2 { // twice in each
						e.Time = time.Now()
						e.Extensions = map[string]string{"traceparent": uuid.NewString()}
						if err := add(t.Context(), o, tx, e); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where event_id = $1`, e.ID))
			require.Equal(t, int64(1), number(t, pool, `select version from outbox_key where key = $1`, writer),
				"no number is taken for what is not added")
		})
	}
}

func TestARepeatedEventLeavesTheOthersOfItsCall(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := givenEvent()
	commit(t, o, pool, e)
	fresh := givenEvent()
	added := commit(t, o, pool, newEvent("k"), e, fresh, fresh, newEvent("k"))
	require.Equal(t, []bool{false, true, false, true, false}, []bool{
		added[0].Repeated, added[1].Repeated, added[2].Repeated, added[3].Repeated, added[4].Repeated,
	})
	require.Equal(t, []int64{2, 0, 3, 0, 4}, []int64{
		added[0].Version, added[1].Version, added[2].Version, added[3].Version, added[4].Version,
	})
	require.Equal(t, e.ID, added[1].ID)
	require.Equal(t, int64(4), number(t, pool, `select count(*) from outbox`))
}

func TestAnIDIsGivenOncePerCall(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	first := givenEvent()
	second := first
	second.Data = []byte(`{"n":2}`)
	tx := begin(t, pool)
	_, err := o.Add(t.Context(), tx, first, second)
	var refused *EventError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, CodeIDConflict, refused.Code)
	require.Equal(t, 1, refused.Index)
	require.NoError(t, tx.Commit(t.Context()))
	require.Zero(t, number(t, pool, `select count(*) from outbox`))
	require.Zero(t, number(t, pool, `select count(*) from outbox_given_id`))
}

func TestAVersionConflictRecordsNoID(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := givenEvent()
	e.Version = 2
	tx := begin(t, pool)
	_, err := o.Add(t.Context(), tx, e)
	require.ErrorIs(t, err, ErrVersionConflict)
	require.NoError(t, tx.Commit(t.Context()))
	e.Version = 1
	require.False(t, commit(t, o, pool, e)[0].Repeated)

	e = givenEvent()
	e.Version = 9
	require.ErrorIs(t, queued(t.Context(), o, pool, e), ErrVersionConflict)
	e.Version = 2
	require.NoError(t, queued(t.Context(), o, pool, e))
	require.Equal(t, int64(2), number(t, pool, `select count(*) from outbox`))
}

func TestAnIDUnderWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for writer, add := range writers {
		for _, c := range []struct {
			name           string
			commits, other bool
			conflict       bool
			rows           int64
		}{
			{name: "the first commits", commits: true, other: true, conflict: true, rows: 1},
			{name: "the first commits the same", commits: true, rows: 1},
			{name: "the first rolls back", other: true, rows: 1},
		} {
			t.Run(writer+", "+c.name, func(t *testing.T) {
				e := givenEvent()
				holder, waiter := begin(t, pool), begin(t, pool)
				_, err := o.Add(t.Context(), holder, e)
				require.NoError(t, err)
				second := e
				if c.other {
					second.Data = []byte(`{"n":2}`)
				}
				result := make(chan error, 1)
				go func() { result <- add(t.Context(), o, waiter, second) }()
				awaitLockWait(t, pool, waiter)
				if c.commits {
					require.NoError(t, holder.Commit(t.Context()))
				} else {
					require.NoError(t, holder.Rollback(t.Context()))
				}
				err = <-result
				if c.conflict {
					requireIDConflict(t, err)
					require.NoError(t, waiter.Rollback(t.Context()))
				} else {
					require.NoError(t, err)
					require.NoError(t, waiter.Commit(t.Context()))
				}
				require.Equal(t, c.rows, number(t, pool, `select count(*) from outbox where event_id = $1`, e.ID))
			})
		}
	}
}

func TestAConflictMayBeOnlyLogged(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	for writer, add := range writers {
		t.Run(writer, func(t *testing.T) {
			var log bytes.Buffer
			o, err := New(Config{
				Source: "/test", OnConflict: ConflictWarn, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			require.NoError(t, err)
			first := givenEvent()
			second := first
			second.Data = []byte(`{"secret":2}`)
			for _, e := range []event.Event{first, second, first} {
				require.NoError(t, inTx(t, pool, func(tx pgx.Tx) error { return add(t.Context(), o, tx, e) }))
			}
			require.Equal(t, int64(2), number(t, pool, `select count(*) from outbox where event_id = $1`, first.ID))
			require.Contains(t, log.String(), "event_id="+first.ID)
			require.NotContains(t, log.String(), "secret")
		})
	}
	_, err := New(Config{OnConflict: "ignore"})
	require.ErrorContains(t, err, `"ignore" is neither "error" nor "warn"`)
}

type roundTrips struct{ n int }

func (r *roundTrips) count(ctx context.Context) context.Context {
	r.n++
	return ctx
}

func traced(t *testing.T, pool *pgxpool.Pool) (*pgx.Conn, *roundTrips) {
	t.Helper()
	trips := &roundTrips{}
	cfg := pool.Config().ConnConfig
	cfg.Tracer = testkit.Tracer{Begin: trips.count}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn, trips
}

// A generated id costs one round trip per call, no savepoint and no extra row.
func TestAnOwnIDCostsNothing(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	conn, trips := traced(t, pool)
	require.NoError(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		trips.n = 0
		_, err := o.Add(t.Context(), tx, newEvent("a"))
		require.NoError(t, err)
		require.Equal(t, 1, trips.n)
		_, err = o.Add(t.Context(), tx, newEvent("a"), newEvent("b"))
		require.NoError(t, err)
		require.Equal(t, 2, trips.n)
		batch := &pgx.Batch{}
		require.NoError(t, o.Queue(t.Context(), batch, newEvent("a")))
		require.Equal(t, 1, batch.Len())
		return tx.SendBatch(t.Context(), batch).Close()
	}))
	require.Zero(t, number(t, pool, `select count(*) from outbox_given_id`))
}

func TestAKeyIsLockedBeforeAGivenID(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("k"))
	e := givenEvent()
	holder, two, one := begin(t, pool), begin(t, pool), begin(t, pool)
	_, err := LockKey(t.Context(), holder, testTopic, "k")
	require.NoError(t, err)
	add := func(tx pgx.Tx, events ...event.Event) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := o.Add(t.Context(), tx, events...)
			done <- errors.Join(err, tx.Commit(t.Context()))
		}()
		awaitLockWait(t, pool, tx)
		return done
	}
	first := add(two, newEvent("j"), e)
	second := add(one, e)
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where event_id = $1`, e.ID))
}
