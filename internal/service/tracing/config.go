// Package tracing sends a service's spans to a collector: OTLP over HTTP, in its JSON form, by OpenTelemetry's own
// variables. It never delays what it tells of: what a collector does not take in time is dropped, and counted.
package tracing

import (
	"fmt"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/internal/config"
)

// Config is where spans go. The variables and their values are OpenTelemetry's; only the default of the first is not.
type Config struct {
	Exporter string        `env:"TRACES_EXPORTER" envDefault:"none" oneof:"none otlp" doc:"otlp sends spans to a collector"`
	Endpoint string        `env:"EXPORTER_OTLP_ENDPOINT" envDefault:"http://localhost:4318" format:"url" doc:"of the collector, for OTLP over HTTP; spans go to /v1/traces below it, as JSON"`
	Headers  config.Secret `env:"EXPORTER_OTLP_HEADERS" doc:"sent along, such as a login: name=value, separated by commas"`
	Sampler  string        `env:"TRACES_SAMPLER" envDefault:"parentbased_always_on" oneof:"always_on always_off traceidratio parentbased_always_on parentbased_always_off parentbased_traceidratio" doc:"which requests are traced; what follows from a request goes by its decision"`
	Ratio    string        `env:"TRACES_SAMPLER_ARG" envDefault:"1" doc:"of a sampler with traceidratio: the share of traces, from 0 to 1"`
}

// Rules are what must hold between the variables.
func (c Config) Rules() []config.Rule {
	ratio, err := strconv.ParseFloat(c.Ratio, 64)
	_, headersErr := c.headers()
	return []config.Rule{{
		Variable: "OTEL_TRACES_SAMPLER_ARG", Holds: err == nil && ratio >= 0 && ratio <= 1,
		Text: "must be a number from 0 to 1",
	}, {
		Variable: "OTEL_EXPORTER_OTLP_HEADERS", Holds: headersErr == nil,
		Text: "must be name=value, separated by commas",
	}}
}

func (c Config) headers() (map[string]string, error) {
	list := map[string]string{}
	for pair := range strings.SplitSeq(c.Headers.Reveal(), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, fmt.Errorf("read header %d", len(list)+1)
		}
		list[name] = strings.TrimSpace(value)
	}
	return list, nil
}

func (c Config) sampler() sdktrace.Sampler {
	ratio, _ := strconv.ParseFloat(c.Ratio, 64)
	kind, child := strings.CutPrefix(c.Sampler, "parentbased_")
	base := map[string]sdktrace.Sampler{
		"always_on": sdktrace.AlwaysSample(), "always_off": sdktrace.NeverSample(),
		"traceidratio": sdktrace.TraceIDRatioBased(ratio),
	}[kind]
	if child {
		base = sdktrace.ParentBased(base)
	}
	return linked{base}
}

// linked samples a span that begins a trace of its own and is linked to others: the engine links to sampled ones alone,
// so that was decided when they began.
type linked struct{ sdktrace.Sampler }

// ShouldSample implements [sdktrace.Sampler].
func (l linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if len(p.Links) > 0 && !trace.SpanContextFromContext(p.ParentContext).IsValid() {
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return l.Sampler.ShouldSample(p)
}
