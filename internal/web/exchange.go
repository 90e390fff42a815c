package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/internal/event"
)

// edge is what all requests of a router share.
//
// It counts requests and measures how long they take, by method, route and class of status: the path would be a label
// value per customer. What was refused before it had a route counts as well. Of an answer that was cut off it counts
// what had been said until then.
type edge struct {
	config   Config
	log      *slog.Logger
	tracer   trace.Tracer
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// exchange is what this package knows about one request and its answer. It travels in the request's context.
type exchange struct {
	id     string // names the request in the log and in the answer
	method string // of the request; what a client made up stays out of logs, metrics and traces
	follow string // correlation id of all that follows from the request: the client's, or id
	client string // see [ClientOf]
	config Config
	cause  error // of the problem that was answered, for the log
	code   Code
	status int // of that problem; the answer's own where it had not begun
}

type exchangeKey struct{}

// exchangeOf returns the exchange that the router began, or a fresh one with defaults for a handler that is used
// without the router.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{id: uuid.NewString(), config: Config{}.WithDefaults()}
}

// contentPolicy lets a page bring its own style and nothing else.
const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// correlationID is one that logs and headers can carry: letters, digits and a few marks, and not too long.
var correlationID = regexp.MustCompile(`^[A-Za-z0-9_.:/+=-]{1,128}$`)

// wrap takes each request in and sees its answer out: it names the request, begins its span, limits its time, and sets
// the headers of every answer. Nothing is stored by caches or shown in frames unless a handler says otherwise. A
// handler whose time is over answers itself, through [WriteProblem].
func (e *edge) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		x := &exchange{
			id: uuid.Must(uuid.NewV7()).String(), method: r.Method, config: e.config,
			client: identify(r, e.config.TrustedProxies),
		}
		if !slices.Contains(methods, x.method) {
			x.method = "_OTHER"
		}
		x.follow = x.id
		if asked := r.Header.Get("X-Correlation-Id"); correlationID.MatchString(asked) {
			x.follow = asked
		}
		ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := e.tracer.Start(ctx, x.method, trace.WithSpanKind(trace.SpanKindServer))
		ctx = event.WithCause(ctx, event.Cause{CorrelationID: x.follow})
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), e.config.RequestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		header := answer.Header()
		header.Set("X-Request-Id", x.id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Referrer-Policy", "no-referrer") // a token in a query must not travel on
		header.Set("Cache-Control", "no-store")
		e.inFlight.Inc()
		defer e.inFlight.Dec()
		defer e.finish(r, x, answer, span, began)
		next.ServeHTTP(answer, r)
	})
}

// finish, deferred, counts a request, ends its span and writes one line about it when it is answered or cut off. It
// runs behind the router, which alone knows the route, and says that instead of the path and its query, which may hold
// an id or a token. It names no address and no body either.
//
// A panic it turns into a 500, or cuts the connection when the answer has begun: half an answer must not look whole.
func (e *edge) finish(
	r *http.Request, x *exchange, answer middleware.WrapResponseWriter, span trace.Span, began time.Time,
) {
	reason := recover()
	cut := reason == http.ErrAbortHandler //nolint:errorlint // a sentinel that is panicked with, never wrapped
	if reason != nil && !cut {
		e.log.ErrorContext(r.Context(), "panic in handler", slog.String("request_id", x.id),
			slog.String("panic", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
		if cut = answer.Status() != 0; !cut {
			WriteProblem(answer, r, fmt.Errorf("panic in handler: %v", reason))
		}
	}
	took := time.Since(began)
	method, route, status := x.method, chi.RouteContext(r.Context()).RoutePattern(), answer.Status()
	attributes := append(make([]slog.Attr, 0, 10), // room for what follows
		slog.String("request_id", x.id), slog.String("correlation_id", x.follow),
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Int("bytes", answer.BytesWritten()), slog.Duration("duration", took))
	if span.SpanContext().HasTraceID() {
		attributes = append(attributes, slog.String("trace_id", span.SpanContext().TraceID().String()))
	}
	if x.code != "" {
		attributes = append(attributes, slog.String("code", string(x.code)))
	}
	level := slog.LevelInfo
	if max(status, x.status) >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		level = slog.LevelError
		attributes = append(attributes, slog.Any("error", x.cause))
	}
	e.log.LogAttrs(r.Context(), level, "request", attributes...)

	span.SetAttributes(attribute.String("http.request.method", method), attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	if route == "" {
		route = "none"
	} else {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route))
	}
	span.End()

	if status == 0 {
		status = http.StatusOK // what net/http sends for a handler that said nothing
	}
	e.requests.WithLabelValues(method, route, strconv.Itoa(status/100)+"xx").Inc()
	e.seconds.WithLabelValues(method, route).Observe(took.Seconds())
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// ClientOf names the client of a request, for what is counted per client: an IPv4 address, or the /64 of an IPv6
// address, of which one customer of a provider has at least one. It is personal data; keep it out of logs and tables.
func ClientOf(r *http.Request) string { return exchangeOf(r).client }

// identify finds the client, "" on what is no network connection. Proxies are the networks whose X-Forwarded-For is
// trusted; each proxy appends the address that it was reached from, so the list is read from its end, behind which the
// connection's own other end stands: all before the first address that is no proxy's comes from the client, which may
// write anything.
//
// Addresses are read as proxies write them: alone, with a port, in brackets. An IPv4 address inside an IPv6 one is the
// IPv4 address, and a zone is dropped: no address has two names.
func identify(r *http.Request, proxies []netip.Prefix) string {
	var client netip.Addr
	hops := append(list(r.Header["X-Forwarded-For"]), cmp.Or(r.RemoteAddr, "unknown"))
	for _, hop := range slices.Backward(hops) {
		if hop == "" {
			continue
		}
		if host, _, err := net.SplitHostPort(hop); err == nil {
			hop = host
		}
		at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
		if err != nil {
			break // the last proxy that wrote something readable answers for what stands before it
		}
		client = at.Unmap().WithZone("")
		if !slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(client) }) {
			break
		}
	}
	switch {
	case client.Is6():
		return netip.PrefixFrom(client, 64).Masked().String()
	case client.Is4():
		return client.String()
	}
	return ""
}

// limitRate counts requests per client and minute in a sliding window.
func limitRate(perMinute int) func(http.Handler) http.Handler {
	return httprate.LimitBy(perMinute, time.Minute,
		func(r *http.Request) (string, error) { return ClientOf(r), nil },
		httprate.WithResponseHeaders(httprate.ResponseHeaders{}), // the problem has Retry-After
		httprate.WithLimitHandler(func(w http.ResponseWriter, r *http.Request) {
			WriteProblem(w, r, refuseFor(time.Minute, CodeRateLimited, "Too many requests from this client."))
		}))
}
