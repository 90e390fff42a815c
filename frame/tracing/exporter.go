package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/twinbox/engine/failure"
)

// How much may wait, how much goes at once, and for how long.
const (
	queueSpans   = 2048
	batchSpans   = 512
	gatherFor    = time.Second
	sendTimeout  = 5 * time.Second
	drainTimeout = 2 * time.Second
	longestPause = 30 * time.Second
)

// Exporter sends the spans of one service. It is a span processor: a span that ends is put in a queue, or dropped where
// that is full. Nothing else happens where the span ended.
type Exporter struct {
	cfg      Config
	headers  map[string]string
	log      *slog.Logger
	client   *http.Client
	queue    chan sdktrace.ReadOnlySpan
	spans    *prometheus.CounterVec
	provider *sdktrace.TracerProvider
	failing  bool
}

// New returns nil where spans go nowhere. It connects to nothing; Run sends.
func New(
	cfg Config, service, environment string, log *slog.Logger, registerer prometheus.Registerer,
) (*Exporter, error) {
	if cfg.Exporter != "otlp" {
		return nil, nil
	}
	headers, err := cfg.headers()
	if err != nil {
		return nil, err
	}
	e := &Exporter{
		cfg: cfg, headers: headers, log: log, queue: make(chan sdktrace.ReadOnlySpan, queueSpans),
		client: &http.Client{Timeout: sendTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()},
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trace_spans_total", Help: "Spans that ended: sent to the collector, or dropped because it did not take them.",
		}, []string{"result"}),
	}
	for _, result := range []string{"sent", "dropped"} {
		e.spans.WithLabelValues(result)
	}
	if err := registerer.Register(e.spans); err != nil {
		return nil, fmt.Errorf("register trace metrics: %w", err)
	}
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(cfg.sampler()), sdktrace.WithSpanProcessor(e),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service),
			attribute.String("service.namespace", "twinbox"),
			attribute.String("deployment.environment.name", environment))))
	return e, nil
}

// Provider makes the spans that are sent.
func (e *Exporter) Provider() *sdktrace.TracerProvider { return e.provider }

// OnStart implements [sdktrace.SpanProcessor].
func (*Exporter) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor]. It never blocks.
func (e *Exporter) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	select {
	case e.queue <- span:
	default:
		e.spans.WithLabelValues("dropped").Inc()
	}
}

// Shutdown implements [sdktrace.SpanProcessor]: Run ends with its context.
func (*Exporter) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (*Exporter) ForceFlush(context.Context) error { return nil }

// Run sends spans until ctx ends, and then what waits, for 2 s at most.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.client.CloseIdleConnections()
	for {
		batch := e.gather(ctx)
		if ctx.Err() != nil {
			e.drain(ctx, batch)
			return nil
		}
		for pauses := (failure.Backoff{Min: time.Second, Max: longestPause}); ; {
			err := e.send(ctx, batch)
			e.tell(err)
			if err == nil || failure.Classify(err) == failure.Permanent {
				e.count(batch, err)
				break
			}
			if !wait(ctx, pauses.Next()) {
				e.drain(ctx, batch)
				return nil
			}
		}
	}
}

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// gather waits for a span, and then a second for more.
func (e *Exporter) gather(ctx context.Context) (batch []sdktrace.ReadOnlySpan) {
	var full <-chan time.Time
	for len(batch) < batchSpans {
		select {
		case span := <-e.queue:
			batch = append(batch, span)
			if full == nil {
				timer := time.NewTimer(gatherFor)
				defer timer.Stop()
				full = timer.C
			}
		case <-full:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// drain makes one attempt at everything that waits.
func (e *Exporter) drain(ctx context.Context, batch []sdktrace.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for len(e.queue) > 0 {
		batch = append(batch, <-e.queue)
	}
	if len(batch) > 0 {
		e.count(batch, e.send(ctx, batch))
	}
}

func (e *Exporter) count(batch []sdktrace.ReadOnlySpan, err error) {
	result := "sent"
	if err != nil {
		result = "dropped"
	}
	e.spans.WithLabelValues(result).Add(float64(len(batch)))
}

// tell logs that it fails, and that it does not any more.
func (e *Exporter) tell(err error) {
	switch {
	case err != nil && !e.failing:
		e.log.Warn("spans are not sent", "error", err)
	case err == nil && e.failing:
		e.log.Info("spans are sent again")
	}
	e.failing = err != nil
}

func (e *Exporter) send(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	body, err := encode(batch)
	if err != nil {
		return failure.AsPermanent(fmt.Errorf("encode spans: %w", err))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.Endpoint+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return failure.AsPermanent(fmt.Errorf("make request: %w", err))
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range e.headers {
		request.Header.Set(name, value)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return failure.AsTransient(fmt.Errorf("send spans: %w", err))
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return failure.AsTransient(fmt.Errorf("send spans: %s", response.Status))
	}
	return failure.AsPermanent(fmt.Errorf("send spans: %s", response.Status))
}
