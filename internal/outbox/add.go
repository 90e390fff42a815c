package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// Add adds the events to the caller's transaction, in one statement. They are published after it commits, those of one
// key and topic in the order of their versions, and never if it does not.
//
// It locks the events' keys until the transaction ends, in the order of topic and key, takes each key's next numbers
// and inserts. Two transactions that call it more than once for several keys each may deadlock, like any two that lock
// rows in different orders; PostgreSQL then ends one with 40P01.
//
// An event with an id that the caller gives is added once: the same event again, in this call, this transaction or any
// later one, adds nothing ([Added.Repeated]); another event under the id is refused with [CodeIDConflict], or added and
// logged, as [Config.OnConflict] says. What makes it the same are source, type, topic, key, payload and the version, if
// it is named. An id is remembered for [RelayConfig.IDRetention]. While a transaction that gave an id is open, others
// that give the same id wait for its end. It costs a savepoint and a statement; ids made here cost nothing.
//
// Under the context of an inbox handler, events carry on the trace and the correlation id of the handled event, and its
// id as their causation id.
//
// Errors: [*EventError] with nothing added, [ErrVersionConflict] with nothing added, else the database's.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...cloudevent.Event) ([]Added, error) {
	if len(events) == 0 {
		return nil, nil
	}
	b, err := o.batch(events, cloudevent.CauseFrom(ctx))
	if err != nil {
		return nil, err
	}
	added := make([]Added, len(events))
	for i := range added {
		added[i] = Added{ID: events[i].ID, Repeated: true}
	}
	err = o.insert(ctx, tx, b, func(tx pgx.Tx, b *batch) error {
		rows, err := tx.Query(ctx, b.sql()+returningSQL, b.args()...)
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		inserted := 0 // the statement returns the rows in the order in which it inserts them, that of the call
		var position, version int64
		_, err = pgx.ForEachRow(rows, []any{&position, &version}, func() error {
			added[b.index[inserted]] = Added{ID: b.ids[inserted], Version: version, Position: position}
			inserted++
			return nil
		})
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		if err := b.complete(inserted); err != nil {
			return err
		}
		o.count(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// exec is [Outbox.Add] of a batch for callers that need no answer.
func (o *Outbox) exec(ctx context.Context, tx pgx.Tx, b *batch) error {
	return o.insert(ctx, tx, b, func(tx pgx.Tx, b *batch) error {
		tag, err := tx.Exec(ctx, b.sql(), b.args()...)
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		if err := b.complete(int(tag.RowsAffected())); err != nil {
			return err
		}
		o.count(b)
		return nil
	})
}

// within runs the statements in a savepoint if they could do some of the work and not the rest: a conflict must leave
// nothing behind, even if the caller commits nevertheless. Id, lock, number and row share the savepoint, so a rollback
// to it takes back all four.
func (b *batch) within(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	if len(b.given) == 0 && (b.unconditional || len(b.keys) == 1) {
		return do(tx)
	}
	return pgx.BeginFunc(ctx, tx, do)
}

func (b *batch) complete(inserted int) error {
	if inserted != len(b.ids) {
		return ErrVersionConflict
	}
	return nil
}
