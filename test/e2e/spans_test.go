package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

type collected struct {
	Service      string
	TraceID      string
	SpanID       string
	ParentSpanID string
	Name         string
	Kind         int
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	Links        []struct{ TraceID, SpanID string }
}

// The kinds of spans have OTLP's numbers.
const (
	kindServer   = 2
	kindClient   = 3
	kindProducer = 4
	kindConsumer = 5
)

type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []collected
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) settings() []string {
	return []string{
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=k",
	}
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []struct {
					Key   string
					Value struct{ StringValue string }
				}
			}
			ScopeSpans []struct{ Spans []collected }
		}
	}
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "k" ||
		json.NewDecoder(r.Body).Decode(&body) != nil {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range body.ResourceSpans {
		service := ""
		for _, attribute := range resource.Resource.Attributes {
			if attribute.Key == "service.name" {
				service = attribute.Value.StringValue
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				span.Service = service
				c.spans = append(c.spans, span.normalized())
			}
		}
	}
}

// OTLP allows both cases.
func (s collected) normalized() collected {
	s.TraceID, s.SpanID = strings.ToLower(s.TraceID), strings.ToLower(s.SpanID)
	s.ParentSpanID = strings.ToLower(s.ParentSpanID)
	for i, link := range s.Links {
		s.Links[i].TraceID, s.Links[i].SpanID = strings.ToLower(link.TraceID), strings.ToLower(link.SpanID)
	}
	return s
}

func (c *collector) all() []collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

func (c *collector) await(t *testing.T, kind int, name string, holds func(collected) bool) (found collected) {
	t.Helper()
	testkit.Until(t, func() bool {
		all := c.all()
		at := slices.IndexFunc(all, func(s collected) bool {
			return s.Kind == kind && strings.HasPrefix(s.Name, name) && holds(s)
		})
		if at >= 0 {
			found = all[at]
		}
		return at >= 0
	}, "no span %s", name)
	require.Len(t, found.TraceID, 32)
	require.Len(t, found.SpanID, 16)
	require.GreaterOrEqual(t, found.End, found.Start)
	return found
}

func (s collected) linksTo(other collected) bool {
	return slices.ContainsFunc(s.Links, func(l struct{ TraceID, SpanID string }) bool {
		return l.TraceID == other.TraceID && l.SpanID == other.SpanID
	})
}

func TestSpansTellTheStory(t *testing.T) {
	parallel(t)
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	c := newCollector(t)
	s := newScene(t, "spans")
	s.settings = append(c.settings(), "OTEL_TRACES_SAMPLER=parentbased_always_off")
	s.begin(t)
	s.signUpAs(t, "unsampled")
	s.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody, map[string]string{
		"Idempotency-Key": `"k1"`, "tracestate": "vendor=1", "traceparent": "00-" + traceID + "-00f067aa0ba902b7-01",
	})
	inTrace := func(parent string) func(collected) bool {
		return func(s collected) bool { return s.TraceID == traceID && (parent == "" || s.ParentSpanID == parent) }
	}
	server := c.await(t, kindServer, "POST /v1/signups", inTrace("00f067aa0ba902b7"))
	create := c.await(t, kindProducer, "create "+contract.TopicUsers, inTrace(server.SpanID))
	send := c.await(t, kindClient, "send "+contract.TopicUsers, func(s collected) bool { return s.linksTo(create) })
	require.NotEqual(t, traceID, send.TraceID, "of its own: other requests' events are in the call")
	require.Empty(t, send.ParentSpanID)
	for _, consumer := range []string{"customer.profile", "notification.users"} {
		process := c.await(t, kindConsumer, "process "+consumer, func(s collected) bool { return s.linksTo(create) })
		require.Equal(t, strings.Split(consumer, ".")[0], process.Service)
	}
	c.await(t, kindClient, "send mail", inTrace(create.SpanID))
	sent := c.await(t, kindProducer, "create "+contract.TopicMails, inTrace(create.SpanID))
	c.await(t, kindConsumer, "process customer.mail", func(s collected) bool { return s.linksTo(sent) })
	for _, span := range c.all() {
		require.True(t, span.TraceID == traceID || len(span.Links) > 0 && span.ParentSpanID == "",
			"a span of a request that is not sampled: %+v", span)
	}

	carried := "00-" + traceID + "-" + create.SpanID + "-01"
	require.Equal(t, 1,
		count(t, s.customerDB, `select count(*) from outbox where headers ->> 'traceparent' = '`+carried+`'`))
	testkit.Until(t, func() bool {
		return count(t, s.notificationDB, `select count(*) from mail where traceparent = '`+carried+`'`) == 1
	})
	var onTheLog []string
	for _, record := range kafkatest.ReadAll(t, s.brokers, contract.TopicUsers, 2) {
		onTheLog = append(onTheLog, headersIn(record)["traceparent"])
	}
	require.NotContains(t, onTheLog, "")
	require.Contains(t, onTheLog, carried)
	s.replayKeepsTheTrace(t, c)
	s.await(t, customerService, "trace_spans_total", `"sent"`, positive)
	s.await(t, customerService, "trace_spans_total", `"dropped"`, zero)
}

func (s *scene) replayKeepsTheTrace(t *testing.T, c *collector) {
	t.Helper()
	const carried = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	early := healthy()
	late := renamed(early.id(), 2)
	late.headers["traceparent"] = carried
	s.send(t, late.message())
	s.await(t, customerService, "dead_letters_waiting", `consumer="customer.profile",state="parked"`, positive)
	require.Equal(t, 1, count(t, s.customerDB, `select count(*) from dead_letter where consumer = 'customer.profile'
		and headers @> jsonb_build_array(jsonb_build_array('traceparent', encode('`+carried+`', 'base64')))`))
	attempts := func() (n int) {
		for _, span := range c.all() {
			if span.Name == "process customer.profile" &&
				span.linksTo(collected{TraceID: strings.Split(carried, "-")[1], SpanID: strings.Split(carried, "-")[2]}) {
				n++
			}
		}
		return n
	}
	testkit.Until(t, func() bool { return attempts() > 0 })
	before := attempts()
	s.send(t, early.message())
	s.await(t, customerService, "inbox_replays_total", `"customer.profile"`, positive)
	testkit.Until(t, func() bool { return attempts() > before })
}
