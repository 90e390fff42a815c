package outbox

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// EventBus returns Watermill's event bus over [Outbox.Publisher], for one transaction. It publishes values of
// [event.Event]. Each call of Publish is one [Outbox.Add] under ctx. A value of another type is an error.
func (o *Outbox) EventBus(ctx context.Context, tx pgx.Tx) (*cqrs.EventBus, error) {
	publisher, err := o.Publisher(ctx, tx)
	if err != nil {
		return nil, err
	}
	return cqrs.NewEventBusWithConfig(publisher, eventBus)
}

var eventBus = cqrs.EventBusConfig{
	Marshaler: eventMarshaler{},
	GeneratePublishTopic: func(params cqrs.GenerateEventPublishTopicParams) (string, error) {
		return params.Event.(event.Event).Topic, nil
	},
}

type eventMarshaler struct{ cqrs.CommandEventMarshaler }

func (eventMarshaler) Marshal(v any) (*message.Message, error) {
	e, is := v.(event.Event)
	if !is {
		return nil, fmt.Errorf("publish event: %T is not an event.Event", v)
	}
	e.Time = cmp.Or(e.Time, time.Now())
	return e.Message(), nil
}

func (eventMarshaler) Name(e any) string { return e.(event.Event).Type }
