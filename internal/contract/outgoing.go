package contract

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"example.com/twinbox/internal/cloudevent"
)

// NewEvent makes the outbox event of a business event: about the aggregate named key, at its version (0: the next one
// of the key), at the business time. It carries what ctx knows of its cause: the span, or else the trace of the event
// that is being handled, its id, and the correlation id.
func NewEvent(ctx context.Context, event any, key string, version int64, at time.Time) (cloudevent.Event, error) {
	definition, data, err := Encode(event)
	if err != nil {
		return cloudevent.Event{}, err
	}
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	return cloudevent.Event{
		Type:       definition.Type,
		Source:     definition.Source,
		Topic:      definition.Topic,
		Key:        key,
		Version:    version,
		DataSchema: definition.SchemaURI,
		Time:       at,
		Data:       data,
		Extensions: cloudevent.CauseFrom(ctx).Extend(trace),
	}, nil
}
