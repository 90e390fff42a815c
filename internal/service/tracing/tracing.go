// Package tracing sends spans to a collector: OTLP over HTTP as JSON. It drops spans that the collector does not take,
// and never delays a request or an event.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/internal/config"
)

// Config has OpenTelemetry's variables and values; only the first default differs.
type Config struct {
	Exporter string        `env:"TRACES_EXPORTER" envDefault:"none" oneof:"none otlp" doc:"otlp sends spans to a collector"`
	Endpoint string        `env:"EXPORTER_OTLP_ENDPOINT" envDefault:"http://localhost:4318" format:"url" doc:"of the collector; spans go to /v1/traces below it, as OTLP over HTTP in JSON"`
	Headers  config.Secret `env:"EXPORTER_OTLP_HEADERS" doc:"headers for the collector, such as a login: name=value, percent-encoded, separated by commas"`
	Sampler  string        `env:"TRACES_SAMPLER" envDefault:"parentbased_always_on" oneof:"always_on always_off traceidratio parentbased_always_on parentbased_always_off parentbased_traceidratio" doc:"which requests are traced, with all that follows from them"`
	Ratio    string        `env:"TRACES_SAMPLER_ARG" envDefault:"1" doc:"of a sampler with traceidratio: the share of traces, from 0 to 1"`
}

func (c Config) Rules() []config.Rule {
	ratio, err := strconv.ParseFloat(c.Ratio, 64)
	_, areHeaders := c.headers()
	return []config.Rule{{
		Variable: "OTEL_TRACES_SAMPLER_ARG", Holds: err == nil && ratio >= 0 && ratio <= 1,
		Text: "must be a number from 0 to 1",
	}, {
		Variable: "OTEL_EXPORTER_OTLP_HEADERS", Holds: areHeaders, Text: "must be name=value, separated by commas",
	}}
}

func (c Config) headers() (list map[string]string, areHeaders bool) {
	list, areHeaders = map[string]string{}, true
	for pair := range strings.SplitSeq(c.Headers.Reveal(), ",") {
		name, value, isPair := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if isPair && name != "" && err == nil {
			list[name] = value
		} else if isPair || name != "" {
			areHeaders = false
		}
	}
	return list, areHeaders
}

func (c Config) sampler() sdktrace.Sampler {
	ratio, _ := strconv.ParseFloat(c.Ratio, 64)
	kind, isParentBased := strings.CutPrefix(c.Sampler, "parentbased_")
	base := map[string]sdktrace.Sampler{
		"always_on": sdktrace.AlwaysSample(), "always_off": sdktrace.NeverSample(),
		"traceidratio": sdktrace.TraceIDRatioBased(ratio),
	}[kind]
	if isParentBased {
		base = sdktrace.ParentBased(base)
	}
	return linked{base}
}

// The engine links to sampled traces alone, so linked samples a new trace with links.
type linked struct{ sdktrace.Sampler }

func (l linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if len(p.Links) > 0 && !trace.SpanContextFromContext(p.ParentContext).IsValid() {
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return l.Sampler.ShouldSample(p)
}

const gatherFor = time.Second

// New returns nil without an exporter. cfg must keep its [Config.Rules].
func New(
	ctx context.Context, cfg Config, service, environment string, log *slog.Logger, registerer prometheus.Registerer,
) (*sdktrace.TracerProvider, error) {
	if cfg.Exporter != "otlp" {
		return nil, nil
	}
	headers, _ := cfg.headers()
	sender, err := otlptracehttp.New(ctx, otlptracehttp.WithEncoding(otlptracehttp.EncodingJSON),
		otlptracehttp.WithEndpointURL(strings.TrimSuffix(cfg.Endpoint, "/")+"/v1/traces"),
		otlptracehttp.WithHeaders(headers))
	if err != nil {
		return nil, fmt.Errorf("open exporter of spans: %w", err)
	}
	watched := &watchedExporter{SpanExporter: sender, log: log, spans: promauto.With(registerer).NewCounterVec(
		prometheus.CounterOpts{
			Name: "trace_spans_total", Help: "Spans by what the collector did: sent, or dropped because it did not take them.",
		}, []string{"result"})}
	for _, result := range []string{"sent", "dropped"} {
		watched.spans.WithLabelValues(result)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(cfg.sampler()),
		sdktrace.WithBatcher(watched, sdktrace.WithBatchTimeout(gatherFor)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service),
			attribute.String("service.namespace", "twinbox"),
			attribute.String("deployment.environment.name", environment)))), nil
}

type watchedExporter struct {
	sdktrace.SpanExporter
	log       *slog.Logger
	spans     *prometheus.CounterVec
	isFailing bool
}

func (e *watchedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	result := "sent"
	if err != nil {
		result = "dropped"
	}
	e.spans.WithLabelValues(result).Add(float64(len(spans)))
	switch {
	case err != nil && !e.isFailing:
		e.log.WarnContext(ctx, "spans are not sent", "error", err)
	case err == nil && e.isFailing:
		e.log.InfoContext(ctx, "spans are sent again")
	}
	e.isFailing = err != nil
	return nil
}
