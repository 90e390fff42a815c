package tracing

import (
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

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
	out["startTimeUnixNano"], out["endTimeUnixNano"] = nanoseconds(s.StartTime()), nanoseconds(s.EndTime())
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

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

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
