package tracing

import (
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The JSON form of OTLP: Protobuf's, but that ids are in hex and enumerations are numbers.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributes   `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	attributes struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		TraceState   string     `json:"traceState,omitempty"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Flags        int        `json:"flags"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Links        []link     `json:"links,omitempty"`
		Status       status     `json:"status"`
	}
	link struct {
		TraceID    string `json:"traceId"`
		SpanID     string `json:"spanId"`
		TraceState string `json:"traceState,omitempty"`
		Flags      int    `json:"flags"`
	}
	status struct {
		Code int `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// encode writes the spans of one process, by the library that made them.
func encode(batch []sdktrace.ReadOnlySpan) ([]byte, error) {
	whole := resourceSpans{Resource: attributes{keyValues(batch[0].Resource().Attributes())}}
	places := map[instrumentation.Scope]int{}
	for _, s := range batch {
		library := s.InstrumentationScope()
		place, known := places[library]
		if !known {
			place = len(whole.ScopeSpans)
			places[library] = place
			whole.ScopeSpans = append(whole.ScopeSpans, scopeSpans{Scope: scope{library.Name, library.Version}})
		}
		whole.ScopeSpans[place].Spans = append(whole.ScopeSpans[place].Spans, spanOf(s))
	}
	return json.Marshal(tracesData{[]resourceSpans{whole}})
}

func spanOf(s sdktrace.ReadOnlySpan) span {
	own := s.SpanContext()
	out := span{
		TraceID: own.TraceID().String(), SpanID: own.SpanID().String(), TraceState: own.TraceState().String(),
		Flags: int(own.TraceFlags()), Name: s.Name(), Kind: int(s.SpanKind()),
		Start: nanoseconds(s.StartTime()), End: nanoseconds(s.EndTime()), Attributes: keyValues(s.Attributes()),
	}
	if s.Parent().SpanID().IsValid() {
		out.ParentSpanID = s.Parent().SpanID().String()
	}
	for _, l := range s.Links() {
		other := l.SpanContext
		out.Links = append(out.Links, link{
			other.TraceID().String(), other.SpanID().String(), other.TraceState().String(), int(other.TraceFlags()),
		})
	}
	switch s.Status().Code { // OTLP counts them in another order
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status.Code = 2
	case codes.Unset:
	}
	return out
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func keyValues(list []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(list))
	for i, kv := range list {
		out[i] = keyValue{string(kv.Key), nil}
		switch kv.Value.Type() {
		case attribute.BOOL:
			out[i].Value = map[string]any{"boolValue": kv.Value.AsBool()}
		case attribute.INT64:
			out[i].Value = map[string]any{"intValue": strconv.FormatInt(kv.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			out[i].Value = map[string]any{"doubleValue": kv.Value.AsFloat64()}
		default:
			out[i].Value = map[string]any{"stringValue": kv.Value.String()}
		}
	}
	return out
}
