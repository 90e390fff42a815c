package event

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Spans makes the spans of events, named as in OpenTelemetry 1.44. A nil Spans makes none.
//
//	create   PRODUCER  an event, in the trace of its cause; the event carries this span
//	send     CLIENT    a call of the relay, linked to its events, in a trace of its own
//	process  CONSUMER  an attempt of a consumer, linked to its events; in the trace of its event if there is one
//
// Only sampled traces get a span or a link. A span has at most 128 links.
type Spans struct{ tracer trace.Tracer }

const maxLinks = 128

// NewSpans makes spans with the provider; it returns nil for nil.
func NewSpans(provider trace.TracerProvider) *Spans {
	if provider == nil {
		return nil
	}
	return &Spans{provider.Tracer("example.com/twinbox/engine")}
}

// Create gives the event a span in its trace.
func (s *Spans) Create(e *Event) {
	if s == nil || !e.span().IsSampled() {
		return
	}
	ctx, span := s.tracer.Start(e.traced(), "create "+e.Topic, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(attributesOf("create", e.Topic),
			attribute.String("messaging.message.id", e.ID), attribute.String("cloudevents.event_type", e.Type))...))
	e.Extensions = maps.Clone(e.Extensions) // the caller shares the map
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(e.Extensions))
	span.End()
}

// Send begins the span of a relay's call. Call end with its error.
func (s *Spans) Send(topic string, events []*Event) (end func(error)) {
	links := s.linksTo(len(events), func(i int) *Event { return events[i] })
	if len(links) == 0 {
		return noSpan
	}
	return s.start(context.Background(), "send "+topic, trace.SpanKindClient, trace.WithLinks(links...),
		trace.WithAttributes(append(attributesOf("send", topic),
			attribute.Int("messaging.batch.message_count", len(events)))...))
}

// Process begins the span of a consumer's attempt at n events.
func (s *Spans) Process(consumer, topic string, n int, event func(int) *Event) (end func(error)) {
	links := s.linksTo(n, event)
	if len(links) == 0 {
		return noSpan
	}
	parent := context.Background()
	if n == 1 {
		parent = event(0).traced()
	}
	return s.start(parent, "process "+consumer, trace.SpanKindConsumer, trace.WithLinks(links...),
		trace.WithAttributes(append(attributesOf("process", topic),
			attribute.Int("messaging.batch.message_count", n),
			attribute.String("messaging.consumer.group.name", consumer))...))
}

// Call begins the span of a call of another server.
func (s *Spans) Call(name string, cause Cause) (end func(error)) {
	follows := Event{Extensions: map[string]string{
		HeaderTraceParent: cause.TraceParent, HeaderTraceState: cause.TraceState,
	}}
	if s == nil || !follows.span().IsSampled() {
		return noSpan
	}
	return s.start(follows.traced(), name, trace.SpanKindClient)
}

func noSpan(error) {}

// start leaves out an error's text: it may hold personal data.
func (s *Spans) start(
	parent context.Context, name string, kind trace.SpanKind, options ...trace.SpanStartOption,
) (end func(error)) {
	_, span := s.tracer.Start(parent, name, append(options, trace.WithSpanKind(kind))...)
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

func (s *Spans) linksTo(n int, event func(int) *Event) (links []trace.Link) {
	for i := 0; s != nil && i < n && len(links) < maxLinks; i++ {
		if span := event(i).span(); span.IsSampled() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	return links
}
