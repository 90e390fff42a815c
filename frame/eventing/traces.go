package eventing

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/frame/tracing"
)

// part: observability, begin
// openTraces decides where spans go; [Node.Run] has them sent.
func (n *Node) openTraces() (err error) {
	setup := n.setup
	n.traces, err = tracing.New(setup.Config.Tracing, setup.Service, setup.Config.Environment, setup.Log,
		setup.Admin.Registry())
	if err != nil {
		return fmt.Errorf("open traces: %w", err)
	}
	if n.traces != nil {
		n.Spans = cloudevent.NewSpans(n.traces.Provider())
	}
	return nil
}

// part: observability, end

// Traces is what gives the service's requests their spans: with or without a place to send them to, an event carries
// its request's trace on.
func (n *Node) Traces() trace.TracerProvider {
	if n.traces != nil { // part: observability, begin
		return n.traces.Provider()
	}
	// part: observability, end
	return otel.GetTracerProvider()
}
