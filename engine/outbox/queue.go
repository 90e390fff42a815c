package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/cloudevent"
)

// Queue is [Outbox.Add] for one event whose insert travels with other statements: it adds the insert to a batch, which
// the caller sends on its transaction. What holds for Add holds for the event once the batch is through.
//
// Errors: [*EventError] at once, with nothing queued. [ErrVersionConflict] comes from the batch's results, as do the
// database's errors and the [*EventError] of an id that belongs to another event; what the batch held behind the event
// may have run by then, so the transaction must be rolled back.
func (o *Outbox) Queue(ctx context.Context, b *pgx.Batch, event cloudevent.Event) error {
	one, err := o.batch([]cloudevent.Event{event}, cloudevent.CauseFrom(ctx))
	if err != nil {
		return err
	}
	sql, args, repeated := one.sql(), one.args(), false
	if len(one.given) > 0 {
		b.Queue(recordIDsSQL, recordIDsArgs(one.given)...).Query(func(rows pgx.Rows) error {
			found, err := o.readRepeated(rows, one.given)
			repeated = len(found) > 0
			return err
		})
		sql, args = insertGivenSQL, one.givenArgs()
	}
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if repeated {
			return nil
		}
		return o.checkInserted(one, int(tag.RowsAffected()))
	})
	return nil
}
