package cloudevent

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Spans makes the spans of events on their way, as OpenTelemetry names them for messaging. Nil makes none, at no cost.
//
//	create   PRODUCER  an event, in the trace of what led to it; the event carries this span on, unchanged, to its end
//	send     CLIENT    one call of the relay, linked to the events in it, in a trace of its own
//	process  CONSUMER  one attempt of a consumer, linked to the events in it; in the trace of an event that is alone
//
// Only events whose traceparent has the flag sampled get a span or a link, and a span has [MaxLinks] links at most: how
// many spans there are follows from how many first requests are sampled. The names are those of the conventions in
// development, v1.44, and stand in this file alone.
type Spans struct{ tracer trace.Tracer }

// MaxLinks is how many events a span is linked to.
const MaxLinks = 128

// NewSpans makes spans with the provider's tracer; nil for a nil provider.
func NewSpans(provider trace.TracerProvider) *Spans {
	if provider == nil {
		return nil
	}
	return &Spans{provider.Tracer("example.com/twinbox/engine")}
}

// Create gives an event, which carries on the trace of what led to it, a span of its own there: the event carries that
// on instead, in a map of extensions of its own.
func (s *Spans) Create(e *Event) {
	if s == nil || !e.sampled() {
		return
	}
	ctx, span := s.tracer.Start(e.traced(), "create "+e.Topic, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(attributesOf("create", e.Topic),
			attribute.String("messaging.message.id", e.ID), attribute.String("cloudevents.event_type", e.Type))...))
	e.Extensions = maps.Clone(e.Extensions) // the caller has the other
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(e.Extensions))
	span.End()
}

// Send begins the span of a call. Call end, with what came of it.
func (s *Spans) Send(topic string, events []*Event) (end func(error)) {
	if s == nil {
		return noSpan
	}
	links := linksTo(len(events), func(i int) *Event { return events[i] })
	if len(links) == 0 {
		return noSpan
	}
	_, span := s.tracer.Start(context.Background(), "send "+topic, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithLinks(links...), trace.WithAttributes(append(attributesOf("send", topic),
			attribute.Int("messaging.batch.message_count", len(events)))...))
	return endOf(span)
}

// Process begins the span of a consumer's attempt at n events.
func (s *Spans) Process(consumer string, n int, event func(int) *Event) (end func(error)) {
	if s == nil {
		return noSpan
	}
	links := linksTo(n, event)
	if len(links) == 0 {
		return noSpan
	}
	parent := context.Background()
	if n == 1 {
		parent = event(0).traced()
	}
	_, span := s.tracer.Start(parent, "process "+consumer, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(
			append(attributesOf("process", event(0).Topic), attribute.Int("messaging.batch.message_count", n),
				attribute.String("messaging.consumer.group.name", consumer))...))
	return endOf(span)
}

// Call begins the span of a call of another server, such as the mail server, that follows from an event: in its trace.
func (s *Spans) Call(name string, cause Cause) (end func(error)) {
	follows := Event{Extensions: map[string]string{
		HeaderTraceParent: cause.TraceParent, HeaderTraceState: cause.TraceState,
	}}
	if s == nil || !follows.sampled() {
		return noSpan
	}
	_, span := s.tracer.Start(follows.traced(), name, trace.WithSpanKind(trace.SpanKindClient))
	return endOf(span)
}

func noSpan(error) {}

// endOf says of an error only that there was one: its text may hold what a collector must not see.
func endOf(span trace.Span) func(error) {
	return func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func attributesOf(operation, topic string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.destination.name", topic),
	}
}

func linksTo(n int, event func(int) *Event) (links []trace.Link) {
	for i := 0; i < n && len(links) < MaxLinks; i++ {
		if e := event(i); e.sampled() {
			if span := trace.SpanContextFromContext(e.traced()); span.IsValid() {
				links = append(links, trace.Link{SpanContext: span})
			}
		}
	}
	return links
}

// sampled looks at the last digit of the traceparent. Events that follow from no request have no extensions at all.
func (e *Event) sampled() bool {
	if len(e.Extensions) == 0 {
		return false
	}
	parent := e.Extensions[HeaderTraceParent]
	return len(parent) == 55 && strings.IndexByte("13579bdf", parent[54]) >= 0
}

// traced is a context in the event's trace.
func (e *Event) traced() context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(e.Extensions))
}
