package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/internal/failure"
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

// Exporter sends the spans of one service. A span that ends is put in a queue, or dropped where that is full. Nothing
// else happens where the span ended.
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

// New returns nil where spans go nowhere. It connects to nothing; Run sends. cfg keeps its [Config.Rules].
func New(cfg Config, service, environment string, log *slog.Logger, registerer prometheus.Registerer) *Exporter {
	if cfg.Exporter != "otlp" {
		return nil
	}
	headers, _ := cfg.headers()
	e := &Exporter{
		cfg: cfg, headers: headers, log: log, queue: make(chan sdktrace.ReadOnlySpan, queueSpans),
		client: &http.Client{Timeout: sendTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()},
		spans: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
			Name: "trace_spans_total", Help: "Spans that ended: sent to the collector, or dropped because it did not take them.",
		}, []string{"result"}),
	}
	for _, result := range []string{"sent", "dropped"} {
		e.spans.WithLabelValues(result)
	}
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(cfg.sampler()), sdktrace.WithSyncer(e),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service),
			attribute.String("service.namespace", "twinbox"),
			attribute.String("deployment.environment.name", environment))))
	return e
}

// Provider makes the spans that are sent.
func (e *Exporter) Provider() *sdktrace.TracerProvider { return e.provider }

// ExportSpans implements [sdktrace.SpanExporter], for sampled spans as each of them ends. It never blocks.
func (e *Exporter) ExportSpans(_ context.Context, ended []sdktrace.ReadOnlySpan) error {
	for _, span := range ended {
		select {
		case e.queue <- span:
		default:
			e.spans.WithLabelValues("dropped").Inc()
		}
	}
	return nil
}

// Shutdown implements [sdktrace.SpanExporter]: Run ends with its context.
func (*Exporter) Shutdown(context.Context) error { return nil }

// Run sends spans until ctx ends, and then makes one attempt at what waits, for 2 s at most.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.client.CloseIdleConnections()
	pauses := failure.Backoff{Min: time.Second, Max: longestPause}
	var batch []sdktrace.ReadOnlySpan
	for pause := gatherFor; failure.Sleep(ctx, pause) == nil; {
		pause = gatherFor
		if batch = e.take(batch, batchSpans); len(batch) == 0 {
			continue
		}
		err := e.send(ctx, batch)
		e.tell(err)
		if err != nil && failure.Classify(err) != failure.Permanent {
			pause = pauses.Next()
			continue
		}
		e.count(batch, err)
		if len(batch) == batchSpans {
			pause = 0 // more may wait
		}
		pauses.Reset()
		batch = batch[:0]
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if batch = e.take(batch, queueSpans+batchSpans); len(batch) > 0 {
		e.count(batch, e.send(ctx, batch))
	}
	return nil
}

// take adds what waits to a batch, up to so many.
func (e *Exporter) take(batch []sdktrace.ReadOnlySpan, most int) []sdktrace.ReadOnlySpan {
	for len(batch) < most && len(e.queue) > 0 {
		batch = append(batch, <-e.queue)
	}
	return batch
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

// object is a message of OTLP in its JSON form: Protobuf's, but that ids are in hex and enumerations are numbers.
type object = map[string]any

// encode writes the spans of one process, by the library that made them.
func encode(batch []sdktrace.ReadOnlySpan) ([]byte, error) {
	spans := map[instrumentation.Scope][]object{}
	for _, s := range batch {
		library := s.InstrumentationScope()
		spans[library] = append(spans[library], spanOf(s))
	}
	var scopes []object
	for library, made := range spans {
		scopes = append(scopes, object{
			"scope": object{"name": library.Name, "version": library.Version}, "spans": made,
		})
	}
	return json.Marshal(object{"resourceSpans": []object{{
		"resource": object{"attributes": keyValues(batch[0].Resource().Attributes())}, "scopeSpans": scopes,
	}}})
}

// statusCodes are OTLP's, which counts them in another order; unset is 0 in both.
var statusCodes = map[codes.Code]int{codes.Ok: 1, codes.Error: 2}

func spanOf(s sdktrace.ReadOnlySpan) object {
	links := make([]object, len(s.Links()))
	for i, l := range s.Links() {
		links[i] = identity(l.SpanContext)
	}
	out := identity(s.SpanContext())
	if s.Parent().SpanID().IsValid() {
		out["parentSpanId"] = s.Parent().SpanID().String()
	}
	out["name"], out["kind"] = s.Name(), int(s.SpanKind())
	out["startTimeUnixNano"] = fmt.Sprint(s.StartTime().UnixNano())
	out["endTimeUnixNano"] = fmt.Sprint(s.EndTime().UnixNano())
	out["attributes"], out["links"] = keyValues(s.Attributes()), links
	out["status"] = object{"code": statusCodes[s.Status().Code]}
	return out
}

func identity(c trace.SpanContext) object {
	return object{
		"traceId": c.TraceID().String(), "spanId": c.SpanID().String(),
		"traceState": c.TraceState().String(), "flags": int(c.TraceFlags()),
	}
}

func keyValues(list []attribute.KeyValue) []object {
	out := make([]object, len(list))
	for i, kv := range list {
		value := object{}
		switch kv.Value.Type() {
		case attribute.BOOL:
			value["boolValue"] = kv.Value.AsBool()
		case attribute.INT64:
			value["intValue"] = strconv.FormatInt(kv.Value.AsInt64(), 10)
		case attribute.FLOAT64:
			value["doubleValue"] = kv.Value.AsFloat64()
		default:
			value["stringValue"] = kv.Value.String()
		}
		out[i] = object{"key": string(kv.Key), "value": value}
	}
	return out
}
