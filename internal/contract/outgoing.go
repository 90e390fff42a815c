package contract

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/outbox"
)

// NewEvent makes the outbox event of a business event: about the aggregate named key, at its version (0: the next one
// of the key), at the business time. It carries what ctx knows of its cause: the span, or else the trace of the event
// that is being handled, its id, and the correlation id.
func NewEvent(ctx context.Context, event any, key string, version int64, at time.Time) (outbox.Event, error) {
	definition, data, err := Encode(event)
	if err != nil {
		return outbox.Event{}, err
	}
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	return outbox.Event{
		Type:       definition.Type,
		Source:     definition.Source,
		Topic:      definition.Topic,
		Key:        key,
		Version:    version,
		DataSchema: definition.SchemaURI,
		OccurredAt: at,
		Data:       data,
		Extensions: cloudevent.CauseFrom(ctx).Extend(trace),
	}, nil
}
