package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Add adds the events to the caller's transaction, in one statement. They are published after it commits, those of one
// key and topic in the order of their versions, and never if it does not.
//
// It locks the events' keys until the transaction ends, in the order of topic and key, takes each key's next numbers
// and inserts. Two transactions that call it more than once for several keys each may deadlock, like any two that lock
// rows in different orders; PostgreSQL then ends one with 40P01.
//
// Errors: [*EventError] before anything is sent, [ErrVersionConflict] with nothing added, else the database's.
func (o *Outbox) Add(ctx context.Context, tx pgx.Tx, events ...Event) ([]Added, error) {
	if len(events) == 0 {
		return nil, nil
	}
	b, err := o.batch(events)
	if err != nil {
		return nil, err
	}
	var added []Added
	err = b.within(ctx, tx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, b.sql()+returningSQL, b.args()...)
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		added, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Added, err error) {
			return a, row.Scan(&a.Position, &a.Version)
		})
		if err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		return b.complete(len(added))
	})
	if err != nil {
		return nil, err
	}
	for i := range added { // the statement returns the rows in the order in which it inserts them, that of the call
		added[i].ID = b.ids[i]
	}
	o.count(b)
	return added, nil
}

// exec is [Outbox.Add] for who has only the statement's arguments and wants only the number of rows.
func (b *batch) exec(ctx context.Context, tx pgx.Tx) (tag pgconn.CommandTag, err error) {
	err = b.within(ctx, tx, func(tx pgx.Tx) error {
		if tag, err = tx.Exec(ctx, b.sql(), b.args()...); err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
		return b.complete(int(tag.RowsAffected()))
	})
	return tag, err
}

// within runs the statement in a savepoint if it could add some of the events and not the others: a conflict must
// leave nothing behind, even if the caller commits nevertheless. Lock, number and row share the savepoint, so a
// rollback to it takes back all three.
func (b *batch) within(ctx context.Context, tx pgx.Tx, do func(pgx.Tx) error) error {
	if b.unconditional || len(b.keys) == 1 {
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
