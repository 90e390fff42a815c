package outbox

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func queued(ctx context.Context, o *Outbox, pool *pgxpool.Pool, events ...event.Event) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, e := range events {
			batch := &pgx.Batch{}
			if err := o.Queue(ctx, batch, e); err != nil {
				return err
			}
			batch.Queue(`select 1`)
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestQueueAddsWithTheBatch(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	require.NoError(t, queued(t.Context(), o, pool, newEvent("a"), newEvent("a"), newEvent("b")))
	require.Equal(t, int64(3), number(t, pool, `select count(*) from outbox`))
	require.Equal(t, int64(2), number(t, pool, `select max(version) from outbox where key = 'a'`))
	require.Equal(t, int64(3), commit(t, o, pool, newEvent("a"))[0].Version, "Add goes on where Queue was")
}

func TestQueueKeepsItsErrorForTheBatch(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	second := newEvent("a")
	second.Version = 2
	require.ErrorIs(t, queued(t.Context(), o, pool, second), ErrVersionConflict)
	require.Zero(t, number(t, pool, `select count(*) from outbox`))

	nameless := newEvent("a")
	nameless.Topic = ""
	batch := &pgx.Batch{}
	var refused *EventError
	require.ErrorAs(t, o.Queue(t.Context(), batch, nameless), &refused)
	require.Zero(t, batch.Len(), "nothing is queued")
}
