package inbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// delivery is the context in which a message goes through its handler. It ends with the attempt, which may be that of a
// batch; its values are those of the message. It takes the transaction and the event from the middleware to the Mux,
// because a Watermill handler sees nothing but the message; business code gets them as arguments.
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
