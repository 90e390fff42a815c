package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// Mux sends each event type to its handler. Call [Handle] before the first message.
type Mux struct {
	handlers map[string]func(context.Context, pgx.Tx, event.Event) error
}

// NewMux returns a Mux without handlers.
func NewMux() *Mux {
	return &Mux{handlers: make(map[string]func(context.Context, pgx.Tx, event.Event) error)}
}

// Handle registers fn for an event. fn's writes with tx are committed together with the event's id. Handle panics when
// the type has a handler.
func Handle[T any](
	m *Mux, d event.Definition[T],
	fn func(ctx context.Context, tx pgx.Tx, e event.Event, data T) error,
) {
	if m.Accepts(d.Type) {
		panic("inbox: two handlers for " + d.Type)
	}
	m.handlers[d.Type] = func(ctx context.Context, tx pgx.Tx, e event.Event) error {
		data, err := d.Decode(e)
		if err != nil {
			return PermanentAs(CodePayload, fmt.Errorf("decode %s: %w", d.Type, err))
		}
		return fn(ctx, tx, e, data)
	}
}

// Accepts reports whether the type has a handler.
func (m *Mux) Accepts(eventType string) bool { return m.handlers[eventType] != nil }

// Types returns the types with a handler, sorted.
func (m *Mux) Types() []string { return slices.Sorted(maps.Keys(m.handlers)) }

// Apply runs the event's handler in the transaction of a caller who has recorded the event.
func (m *Mux) Apply(ctx context.Context, tx pgx.Tx, e event.Event) error {
	if !m.Accepts(e.Type) {
		return Permanent(fmt.Errorf("no handler for %s", e.Type))
	}
	return m.handlers[e.Type](ctx, tx, e)
}

// HandleMessage is the Mux's Watermill handler, under the inbox's middleware. It returns no messages.
func (m *Mux) HandleMessage(msg *message.Message) ([]*message.Message, error) {
	d, ok := msg.Context().Value(deliveryKey{}).(*delivery)
	if !ok {
		return nil, errors.New("inbox: no transaction in the message: is the middleware installed?")
	}
	return nil, m.Apply(msg.Context(), d.tx, *d.event)
}

// HandleNoPublish is [Mux.HandleMessage] for a Router's consumer.
func (m *Mux) HandleNoPublish(msg *message.Message) error {
	_, err := m.HandleMessage(msg)
	return err
}

type delivery struct {
	context.Context
	message context.Context
	tx      pgx.Tx
	event   *event.Event
}

type deliveryKey struct{}

// TxFromContext returns the current event's transaction, which the inbox ends. ok is false outside of a handler.
func TxFromContext(ctx context.Context) (tx pgx.Tx, ok bool) {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		return d.tx, true
	}
	return nil, false
}

// EventFromContext returns the current event.
func EventFromContext(ctx context.Context) (e event.Event, ok bool) {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		return *d.event, true
	}
	return event.Event{}, false
}

// Value implements [context.Context]. Outbox events of a handler follow from its event.
func (d *delivery) Value(key any) any {
	switch key {
	case deliveryKey{}:
		return d
	case event.CauseKey{}:
		cause := d.event.Cause()
		return &cause
	}
	return d.message.Value(key)
}

// AfterFunc lets derived contexts end without a goroutine each.
func (d *delivery) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.Context, f) }
