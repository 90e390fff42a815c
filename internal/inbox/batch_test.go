package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func (b *bundle) handle(t *testing.T, handler handlerFunc) (*inbox.Inbox, inbox.BatchFunc) {
	t.Helper()
	in := b.Inbox(t)
	return in, in.BatchMiddleware(muxOf(handler).HandleMessage)
}

func records(t *testing.T, ctx context.Context, events ...event.Event) []*message.Message {
	t.Helper()
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		msgs[i] = record(t, e, int64(i))
		origin, _ := event.OriginFrom(msgs[i].Context())
		msgs[i].SetContext(event.WithOrigin(ctx, origin))
	}
	return msgs
}

func TestHandlersSeeEarlierWrites(t *testing.T) {
	t.Parallel()
	count := `select count(*) from ledger`
	for name, look := range map[string]func(ctx context.Context, tx pgx.Tx) (int, error){
		"query row": func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			return n, tx.QueryRow(ctx, count).Scan(&n)
		},
		"query": func(ctx context.Context, tx pgx.Tx) (int, error) {
			rows, err := tx.Query(ctx, count)
			if err != nil {
				return 0, err
			}
			return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		},
		"exec": func(ctx context.Context, tx pgx.Tx) (int, error) {
			tag, err := tx.Exec(ctx, `update ledger set event_id = event_id`)
			return int(tag.RowsAffected()), err
		},
		"batch": func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			batch := &pgx.Batch{}
			batch.Queue(count).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
			return n, tx.SendBatch(ctx, batch).Close()
		},
		"savepoint": func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			err = pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
				if err := inbox.Queue(ctx, inner, `delete from ledger`); err != nil {
					return err
				}
				return errors.New("undone")
			})
			return n, errors.Join(tx.QueryRow(ctx, count).Scan(&n), ignore(err, "undone"))
		},
		"copy": func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			_, err = tx.CopyFrom(ctx, pgx.Identifier{"ledger"}, []string{"event_id"}, pgx.CopyFromRows(nil))
			return n, errors.Join(err, tx.QueryRow(ctx, count).Scan(&n))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var seen []int
			_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
				n, err := look(ctx, tx)
				seen = append(seen, n)
				return errors.Join(err, inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID))
			})
			_, err := handle(t.Context(), records(t, t.Context(), versions("key-1", 1, 2, 3)()...))
			require.NoError(t, err)
			require.Equal(t, []int{0, 1, 2}, seen)
			require.Equal(t, 3, b.Count(t, count))
		})
	}
}

func ignore(err error, text string) error {
	if err != nil && err.Error() == text {
		return nil
	}
	return err
}

// A handler continues after an earlier handler's write failed.
func TestAFailedQueuedWriteIsItsOwnEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 1
	e := threeWithBadMiddle()
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if data.Value == "bad" {
			return inbox.Queue(ctx, tx, `insert into nowhere values (1)`)
		}
		var n int
		_ = tx.QueryRow(ctx, `select 1`).Scan(&n)
		rows, err := tx.Query(ctx, `select 1`)
		if err == nil {
			rows.Close()
		}
		_ = tx.SendBatch(ctx, &pgx.Batch{}).Close()
		_, _ = tx.Begin(ctx)
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), records(t, t.Context(), e...))
	require.NoError(t, err)
	require.Equal(t, []string{e[1].ID}, b.List(t, `select event_id from dead_letter`))
	require.Equal(t, []string{e[0].ID, e[2].ID, e[3].ID}, b.List(t, `select event_id from ledger order by n`))
}

func TestABatchWhosePartitionIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.Batch = 2
	ctx, lose := context.WithCancelCause(t.Context())
	lost := errors.New("partition lost")
	events := versions("key-1", 1, 2, 3, 4, 5)()
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if e.ID == events[3].ID {
			lose(lost)
		}
		return effect(ctx, tx, e, data)
	})
	handled, err := handle(ctx, records(t, ctx, events...))
	require.ErrorIs(t, err, lost)
	require.Equal(t, 2, handled)
	require.Equal(t, 2, b.Count(t, `select count(*) from ledger`))
	handled, err = handle(ctx, records(t, ctx, events...))
	require.ErrorIs(t, err, lost)
	require.Zero(t, handled)
	require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
}

func TestBatchesShrinkWithTheTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.Batch, b.Config.HandlerTimeout = 4, time.Second
	slow := true
	var last pgx.Tx
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if slow && tx == last {
			<-ctx.Done()
			return ctx.Err()
		}
		last = tx
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), records(t, t.Context(), versions("key-1", 1, 2, 3, 4)()...))
	require.NoError(t, err)
	require.Equal(t, 4, b.Count(t, `select count(*) from ledger`), "alone, each has the time to itself")
	require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
	require.Equal(t, 3, b.counter(t, "inbox_split_batches_total", "test"))
	slow = false
	_, err = handle(t.Context(), records(t, t.Context(), versions("key-1", 1, 2, 3, 4)()...))
	require.NoError(t, err)
	require.Equal(t, 8, b.Count(t, `select count(*) from ledger`))
	require.Equal(t, 3, b.counter(t, "inbox_split_batches_total", "test"))
}

func TestBatchesOfOneGrowAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.HandlerTimeout = brief
	slow := true
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
		if slow {
			slow = false
			<-ctx.Done()
			return ctx.Err()
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id) values (pg_current_xact_id()::text)`)
	})
	_, err := handle(t.Context(), records(t, t.Context(), versions("key-1", 1, 2)()...))
	require.NoError(t, err)
	b.Exec(t, `delete from ledger`)
	_, err = handle(t.Context(), records(t, t.Context(), versions("key-1", 3, 4, 5, 6, 7, 8)()...))
	require.NoError(t, err)
	require.Equal(t, 6, b.Count(t, `select count(*) from ledger`))
	require.Less(t, b.Count(t, `select count(distinct event_id) from ledger`), 6, "some share a transaction")
}

func TestAKeyThatAnotherTransactionInserts(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.Order, b.Config.Batch = inbox.Latest, batch
			outcomes := b.noteOutcomes()
			inserted := false
			_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
				if !inserted {
					inserted = true
					b.Exec(t, `insert into inbox_key values ('test', 'key-1', 5)`)
				}
				return inbox.Queue(ctx, tx, `insert into ledger (event_id) values ($1)`, e.ID)
			})
			_, err := handle(t.Context(), records(t, t.Context(), v("key-1", 1), v("key-2", 1)))
			require.NoError(t, err)
			require.Equal(t, []inbox.Outcome{inbox.Stale, inbox.Applied}, *outcomes)
			require.Equal(t, 1, b.Count(t, `select count(*) from ledger`))
			require.Equal(t, 5, b.Count(t, `select version from inbox_key where key = 'key-1'`))
		})
	}
}

func TestQueueOnAnotherTransactionWritesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none := errors.New("none")
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		require.NoError(t, inbox.Queue(t.Context(), tx, `insert into ledger (event_id) values ('x')`))
		var n int
		require.NoError(t, tx.QueryRow(t.Context(), `select count(*) from ledger`).Scan(&n))
		require.Equal(t, 1, n)
		require.NoError(t, inbox.QueueRows(t.Context(), tx, none, `delete from ledger where event_id = 'x'`))
		return inbox.QueueRows(t.Context(), tx, none, `delete from ledger where event_id = 'y'`)
	})
	require.ErrorIs(t, err, none)
}
