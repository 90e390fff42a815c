package inbox

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// delivery is the context in which a message goes through its handler. It ends with the attempt, which may be that of a
// batch; its values are those of the message. It takes the transaction and the event from the middleware to the
// handler, because a Watermill handler sees nothing but the message.
//
// What a handler adds to the outbox under it follows from the event; see cloudevent.Cause.
//
// It is one allocation, where a deadline and a value for each message would be several and a timer.
type delivery struct {
	context.Context
	message context.Context
	tx      pgx.Tx
	event   *cloudevent.Event
}

type deliveryKey struct{}

// TxFromContext returns the transaction in which the event's id was just recorded: what a handler writes there is
// committed with the id or not at all. It must not commit or roll it back, and it is of no use after the handler has
// returned. It is for what sees only the message under the middleware: plain Watermill handlers and middlewares, and
// processors of Watermill's cqrs. A typed handler gets it as an argument; see [Handle]. ok is false elsewhere.
func TxFromContext(ctx context.Context) (tx pgx.Tx, ok bool) {
	d, ok := ctx.Value(deliveryKey{}).(*delivery)
	if !ok {
		return nil, false
	}
	return d.tx, true
}

// EventFromContext returns the event that is being handled, as [TxFromContext] returns its transaction.
func EventFromContext(ctx context.Context) (event cloudevent.Event, ok bool) {
	d, ok := ctx.Value(deliveryKey{}).(*delivery)
	if !ok {
		return cloudevent.Event{}, false
	}
	return *d.event, true
}

// Value implements [context.Context].
func (d *delivery) Value(key any) any {
	switch key {
	case deliveryKey{}:
		return d
	case cloudevent.CauseKey{}:
		cause := d.event.Cause()
		return &cause
	}
	return d.message.Value(key)
}

// AfterFunc spares contexts that are derived from this one a goroutine: without it, package context would find by the
// values that the message's context is their parent, see that it is not, and wait for this one in another way.
func (d *delivery) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.Context, f) }

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// handleMessage calls the Watermill handler with the transaction in the message, and takes it out again.
func (it *item) handleMessage(ctx context.Context, tx pgx.Tx) error {
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: tx, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = &codedError{CodePublishes, Permanent(errPublishes)}
	}
	return err
}
