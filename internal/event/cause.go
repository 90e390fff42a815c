package event

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Headers of the CloudEvents extensions for an event's [Cause].
const (
	HeaderCorrelationID = "ce_correlationid"
	HeaderCausationID   = "ce_causationid"
)

// legacyCorrelationID is what Watermill's own middleware writes.
const legacyCorrelationID = "correlation_id"

// Cause is the request or event that an event follows from.
type Cause struct {
	// CorrelationID is the same in all events that follow from one request: the id of the first one, which has none.
	CorrelationID string
	// CausationID is the id of the event before; empty for a first event.
	CausationID string
	// TraceParent and TraceState are W3C Trace Context.
	TraceParent, TraceState string
}

// Cause returns the cause of the events that follow, without invalid values.
func (e *Event) Cause() Cause {
	c := Cause{CorrelationID: e.CorrelationID(), CausationID: e.ID}
	if e.span().IsValid() {
		c.TraceParent = e.Extensions[HeaderTraceParent]
		if state := e.Extensions[HeaderTraceState]; len(state) <= maxTraceState && isText(state) {
			c.TraceState = state
		}
	}
	return c
}

func (e *Event) traced() context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(e.Extensions))
}

func (e *Event) span() trace.SpanContext { return trace.SpanContextFromContext(e.traced()) }

// CorrelationID returns the event's correlation id, or its id.
func (e *Event) CorrelationID() string {
	for _, name := range [...]string{HeaderCorrelationID, legacyCorrelationID} {
		if id := e.Extensions[name]; id != "" && ValidID(id) == nil {
			return id
		}
	}
	return e.ID
}

const maxTraceState = 512 // W3C Trace Context's minimum

// Extend returns the extensions of an event that follows. It keeps extensions that are set.
func (c Cause) Extend(extensions map[string]string) map[string]string {
	if c == (Cause{}) {
		return extensions
	}
	extended := make(map[string]string, len(extensions)+4)
	maps.Copy(extended, extensions)
	add := func(name, value string) {
		if value != "" && extended[name] == "" {
			extended[name] = value
		}
	}
	if extensions[HeaderTraceParent] == "" && c.TraceParent != "" {
		add(HeaderTraceParent, c.TraceParent)
		add(HeaderTraceState, c.TraceState)
	}
	add(HeaderCorrelationID, c.CorrelationID)
	add(HeaderCausationID, c.CausationID)
	return extended
}

// CauseKey is the key of a context's [*Cause].
type CauseKey struct{}

// WithCause returns a context whose events follow from the cause.
func WithCause(ctx context.Context, c Cause) context.Context {
	return context.WithValue(ctx, CauseKey{}, &c)
}

// CauseFrom returns the context's cause, or the zero value. The context's own span is the parent if there is one.
func CauseFrom(ctx context.Context) Cause {
	var c Cause
	if found, ok := ctx.Value(CauseKey{}).(*Cause); ok {
		c = *found
	}
	if trace.SpanContextFromContext(ctx).IsValid() {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		c.TraceParent, c.TraceState = carrier[HeaderTraceParent], carrier[HeaderTraceState]
	}
	return c
}
