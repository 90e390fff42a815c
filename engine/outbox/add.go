package outbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
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
// it is named. An id is remembered for relay.Config.IDRetention. While a transaction that gave an id is open, others
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
	return o.insert(ctx, tx, b)
}

// insert adds the batch, apart from what has been added before under a given id.
func (o *Outbox) insert(ctx context.Context, tx pgx.Tx, b *batch) ([]Added, error) {
	err := b.withSavepoint(ctx, tx, func(tx pgx.Tx) error {
		rest := b
		if len(b.given) > 0 {
			rows, _ := tx.Query(ctx, recordIDsSQL, recordIDsArgs(b.given)...)
			repeated, err := o.readRepeated(rows, b.given)
			if err != nil {
				return err
			}
			if rest, err = b.without(repeated); err != nil {
				return err
			}
		}
		if len(rest.events) == 0 {
			return nil
		}
		return o.insertEvents(ctx, tx, rest)
	})
	if err != nil {
		return nil, err
	}
	return b.added, nil
}

func (o *Outbox) insertEvents(ctx context.Context, tx pgx.Tx, b *batch) error {
	rows, _ := tx.Query(ctx, b.sql(), b.args()...)
	inserted := 0 // the statement returns the rows in the order in which it inserts them, that of the call
	var position, version int64
	_, err := pgx.ForEachRow(rows, []any{&position, &version}, func() error {
		b.added[b.index[inserted]] = Added{ID: b.events[inserted].ID, Version: version, Position: position}
		inserted++
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return o.checkInserted(b, inserted)
}

// checkInserted counts the events, if they were all inserted.
func (o *Outbox) checkInserted(b *batch, inserted int) error {
	if inserted != len(b.events) {
		return ErrVersionConflict
	}
	for _, k := range b.keys {
		o.added.WithLabelValues(k.topic).Add(float64(k.events))
	}
	o.logAdded(b)
	return nil
}

// logAdded says what the transaction adds, if it commits.
func (o *Outbox) logAdded(b *batch) {
	if !o.cfg.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for i := range b.events {
		e := &b.events[i]
		o.cfg.Log.Debug("event added", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
			"topic", e.Topic)
	}
}

// withSavepoint runs the statements in a savepoint if they could do some of the work and not the rest: a conflict must
// leave nothing behind, even if the caller commits nevertheless. Id, lock, number and row share the savepoint, so a
// rollback to it takes back all four.
func (b *batch) withSavepoint(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	if len(b.given) == 0 && (b.unconditional || len(b.keys) == 1) {
		return do(tx)
	}
	return pgx.BeginFunc(ctx, tx, do)
}
