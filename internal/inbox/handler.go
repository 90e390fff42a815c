package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
)

// Mux sends each event type to its typed handler. Register everything with [Handle] before the first message.
type Mux struct {
	handlers map[string]registration
}

type registration struct {
	handle func(context.Context, pgx.Tx, cloudevent.Event) error
	onGap  GapPolicy
	retry  RetryRules
}

// NewMux returns a Mux without handlers.
func NewMux() *Mux {
	return &Mux{handlers: make(map[string]registration)}
}

// Option changes what [Handle] registers.
type Option func(*registration)

// OnGap is the handler's own policy for an event whose predecessor its key has not applied, in a versioned consumer.
// Without it the consumer's applies; see [Config.OnGap].
func OnGap(policy GapPolicy) Option { return func(r *registration) { r.onGap = policy } }

// Retry is how patient the inbox is with the handler, where that is not as [Config] says: with a partner's API that has
// minutes of its own, say, or with a report that is worth one attempt. It holds for events that failed; an event in a
// batch is tried once more alone before it counts. Transient failures are tried for as long as they last, outside these
// rules.
func Retry(rules RetryRules) Option { return func(r *registration) { r.retry = rules } }

// Handle registers fn for an event. fn gets the transaction in which the event's id was just recorded: what it writes
// there is committed with the id or not at all. It must not commit, roll back or keep tx. The payload is read as
// [cloudevent.Definition.Decode] says.
//
// Handle panics when the type has a handler already or an option has no meaning: mistakes in the program.
func Handle[T any](
	m *Mux, event cloudevent.Definition[T],
	fn func(ctx context.Context, tx pgx.Tx, event cloudevent.Event, data T) error, options ...Option,
) {
	if _, taken := m.handlers[event.Type]; taken {
		panic("inbox: two handlers for " + event.Type)
	}
	var r registration
	for _, option := range options {
		option(&r)
	}
	if r.onGap != "" && !r.onGap.valid() {
		panic(fmt.Sprintf("inbox: handler for %s: gap policy %q", event.Type, r.onGap))
	}
	if !r.retry.valid() {
		panic(fmt.Sprintf("inbox: handler for %s: retry rules %+v", event.Type, r.retry))
	}
	r.handle = func(ctx context.Context, tx pgx.Tx, e cloudevent.Event) error {
		data, err := event.Decode(e)
		if err != nil {
			return &codedError{CodePayload, Permanent(fmt.Errorf("decode %s: %w", event.Type, err))}
		}
		return fn(ctx, tx, e, data)
	}
	m.handlers[event.Type] = r
}

// Accepts implements [Handlers].
func (m *Mux) Accepts(eventType string) bool {
	_, ok := m.handlers[eventType]
	return ok
}

// OnGap implements [Handlers]: the policy that the type's handler was registered with, "" without one.
func (m *Mux) OnGap(eventType string) GapPolicy { return m.handlers[eventType].onGap }

// Retry returns the rules that the type's handler was registered with; the zero value stands for the consumer's.
func (m *Mux) Retry(eventType string) RetryRules { return m.handlers[eventType].retry }

// Apply runs the handler of the event's type in a transaction that is not the inbox's: for callers who have recorded
// the event themselves, with [Inbox.MarkProcessed] or in a table of their own. An event that the Mux does not accept is
// a permanent error.
func (m *Mux) Apply(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	r, known := m.handlers[event.Type]
	if !known {
		return Permanent(fmt.Errorf("no handler for %s", event.Type))
	}
	return r.handle(ctx, tx, event)
}

// HandleMessage is the Watermill handler: it runs the typed handler of the message's event. It works under
// [Inbox.Middleware] or [Inbox.BatchMiddleware] alone, which supply the transaction. It returns no messages.
func (m *Mux) HandleMessage(msg *message.Message) ([]*message.Message, error) {
	d, ok := msg.Context().Value(deliveryKey{}).(*delivery)
	if !ok {
		return nil, errors.New("inbox: no transaction in the message: is the middleware installed?")
	}
	return nil, m.handlers[d.event.Type].handle(msg.Context(), d.tx, *d.event)
}

// HandleNoPublish is [Mux.HandleMessage] as a [message.NoPublishHandlerFunc], which a Router wants of a consumer.
func (m *Mux) HandleNoPublish(msg *message.Message) error {
	_, err := m.HandleMessage(msg)
	return err
}

// codedError gives an error the stable code under which its dead letter is filed.
type codedError struct {
	code string
	err  error
}

func (e *codedError) Error() string     { return e.err.Error() }
func (e *codedError) Unwrap() error     { return e.err }
func (e *codedError) ErrorCode() string { return e.code }

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
