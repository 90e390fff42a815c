package eventing

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/frame/tracing"
)

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

// Traces is what gives the service's requests their spans: with or without a place to send them to, an event carries
// its request's trace on.
func (n *Node) Traces() trace.TracerProvider {
	if n.traces == nil {
		return otel.GetTracerProvider()
	}
	return n.traces.Provider()
}
