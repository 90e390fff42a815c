package cloudevent

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Headers of the CloudEvents extensions that tell what an event follows from. The names of extensions are lower-case
// letters and digits.
const (
	HeaderCorrelationID = "ce_correlationid"
	HeaderCausationID   = "ce_causationid"
)

// legacyCorrelationID is what Watermill's own middleware writes.
const legacyCorrelationID = "correlation_id"

// Cause is what led to an event. It goes from the request, or the first event, to all that follows: through the context
// of a handler into the events that the handler adds.
type Cause struct {
	// CorrelationID is the same in all events that follow from one request or one first event. An event that carries
	// none is a first one: its own id is the correlation id of what follows.
	CorrelationID string
	// CausationID is the id of the event from which this one follows directly; empty for a first event.
	CausationID string
	// TraceParent and TraceState are the trace, as in W3C Trace Context.
	TraceParent, TraceState string
}

// Cause is the cause of what follows from the event. Values that do not fit are left out: they come from other systems,
// and what a handler adds must not fail for them.
func (e *Event) Cause() Cause {
	c := Cause{CorrelationID: e.CorrelationID(), CausationID: e.ID}
	parent, state := e.Extensions[HeaderTraceParent], e.Extensions[HeaderTraceState]
	// Its form is version, trace, span, flags.
	if len(parent) == 55 && parent[2] == '-' && parent[35] == '-' && parent[52] == '-' &&
		strings.Trim(parent, "0123456789abcdef-") == "" && strings.Count(parent, "-") == 3 {
		c.TraceParent = parent
		if len(state) <= maxTraceState && isText(state) {
			c.TraceState = state
		}
	}
	return c
}

// CorrelationID is what the event carries, or its own id.
func (e *Event) CorrelationID() string {
	for _, name := range [...]string{HeaderCorrelationID, legacyCorrelationID} {
		if id := e.Extensions[name]; id != "" && ValidID(id) == nil {
			return id
		}
	}
	return e.ID
}

const maxTraceState = 512 // what W3C Trace Context asks every hop to pass on

// Extend returns the extensions of an event that follows from the cause. What is there already stays.
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

// CauseKey is the key under which a context answers with the [*Cause] of what is added under it. A context type that
// holds an event may answer it by itself; others use [WithCause].
type CauseKey struct{}

// WithCause returns a context under which everything that is added follows from the cause.
func WithCause(ctx context.Context, c Cause) context.Context {
	return context.WithValue(ctx, CauseKey{}, &c)
}

// CauseFrom returns the cause of what is added under the context; the zero value if nothing led to it. The context's
// own span, if it has one, is the parent, before the trace of the event that is being handled.
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
