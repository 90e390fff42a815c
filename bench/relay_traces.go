package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/service/tracing"
)

// deadCollector is where nothing listens.
const deadCollector = "http://127.0.0.1:1"

// traceSteps drain the same backlog, all of it of sampled requests, with and without spans that no collector takes.
func (b *relayBench) traceSteps(int) []step {
	return []step{
		{name: "without spans", weight: 5, run: func(ctx context.Context) error { return b.drainTraced(ctx, "off", nil) }},
		{name: "with a dead collector", weight: 5, run: func(ctx context.Context) (err error) {
			provider, err := tracing.New(ctx,
				tracing.Config{Exporter: "otlp", Endpoint: deadCollector, Sampler: "parentbased_always_on", Ratio: "1"},
				"bench", "local", slog.New(slog.DiscardHandler), prometheus.NewRegistry())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, provider.Shutdown(context.WithoutCancel(ctx))) }()
			return b.drainTraced(ctx, "dead", event.NewSpans(provider))
		}},
	}
}

func (b *relayBench) drainTraced(ctx context.Context, name string, spans *event.Spans) error {
	return b.withOurs(ctx, func(db *database, v variant) error {
		o := v.(*ours)
		o.traced, o.spans = true, spans
		d, err := b.drain(ctx, db, v, b.plan.Backlog, "")
		if err == nil {
			b.sheet.add("traces."+name, d.rate)
		}
		return err
	})
}
