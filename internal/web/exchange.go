package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
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

// observer is shared by all requests of a router. Its metrics have the route: the path would give one value per
// customer.
type observer struct {
	config   Config
	log      *slog.Logger
	tracer   trace.Tracer
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

type exchange struct {
	id     string // in the log and in the answer
	method string // _OTHER for an invented one, which must not reach metrics
	follow string // correlation id: the client's, or id
	config Config
	cause  error // of the answered problem, for the log
	code   Code
	status int // of that problem; the answer may have begun with another
}

type exchangeKey struct{}

// exchangeOf returns defaults for a handler without the router.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{id: uuid.NewString(), config: Config{}.WithDefaults()}
}

const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// correlationID is safe for logs and headers.
var correlationID = regexp.MustCompile(`^[A-Za-z0-9_.:/+=-]{1,128}$`)

// wrap gives a request its id, deadline, span and log record.
func (o *observer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		x := &exchange{id: uuid.Must(uuid.NewV7()).String(), method: r.Method, config: o.config}
		if !slices.Contains(methods, x.method) {
			x.method = "_OTHER"
		}
		x.follow = x.id
		if asked := r.Header.Get("X-Correlation-Id"); correlationID.MatchString(asked) {
			x.follow = asked
		}
		ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := o.tracer.Start(ctx, x.method, trace.WithSpanKind(trace.SpanKindServer))
		ctx = event.WithCause(ctx, event.Cause{CorrelationID: x.follow})
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), o.config.RequestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		header := answer.Header()
		header.Set("X-Request-Id", x.id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("Referrer-Policy", "no-referrer") // a token in a query must not leave
		header.Set("Cache-Control", "no-store")
		o.inFlight.Inc()
		defer o.inFlight.Dec()
		defer o.finish(r, x, answer, span, began)
		next.ServeHTTP(answer, r)
	})
}

// finish logs the route, since a path may hold a token. A panic becomes a 500, or cuts an answer that has begun.
func (o *observer) finish(
	r *http.Request, x *exchange, answer middleware.WrapResponseWriter, span trace.Span, began time.Time,
) {
	reason := recover()
	cut := reason == http.ErrAbortHandler //nolint:errorlint // a sentinel that is panicked with, never wrapped
	if reason != nil && !cut {
		o.log.ErrorContext(r.Context(), "panic in handler", slog.String("request_id", x.id),
			slog.String("panic", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
		if cut = answer.Status() != 0; !cut {
			WriteProblem(answer, r, fmt.Errorf("panic in handler: %v", reason))
		}
	}
	took := time.Since(began)
	method, route, status := x.method, chi.RouteContext(r.Context()).RoutePattern(), answer.Status()
	attributes := []slog.Attr{
		slog.String("request_id", x.id), slog.String("correlation_id", x.follow),
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Int("bytes", answer.BytesWritten()), slog.Duration("duration", took),
	}
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
	o.log.LogAttrs(r.Context(), level, "request", attributes...)

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
		status = http.StatusOK // net/http's default
	}
	o.requests.WithLabelValues(method, route, strconv.Itoa(status/100)+"xx").Inc()
	o.seconds.WithLabelValues(method, route).Observe(took.Seconds())
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// ClientOf names a request's client for limits: an IPv4 address, or an IPv6 address's /64. Keep this personal data out
// of logs and tables.
func ClientOf(r *http.Request) string {
	return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context()))
}

// useClientIP takes the connection's peer, or the address that a trusted proxy adds to X-Forwarded-For.
func useClientIP(r chi.Router, proxies []netip.Prefix) {
	r.Use(middleware.ClientIPFromRemoteAddr)
	if len(proxies) == 0 {
		return
	}
	var networks []string
	for _, network := range proxies {
		networks = append(networks, network.String())
	}
	r.Use(middleware.ClientIPFromXFF(networks...))
}

func limitRate(perMinute int) func(http.Handler) http.Handler {
	return httprate.LimitBy(perMinute, time.Minute,
		func(r *http.Request) (string, error) { return ClientOf(r), nil },
		httprate.WithResponseHeaders(httprate.ResponseHeaders{}), // the problem has Retry-After
		httprate.WithLimitHandler(func(w http.ResponseWriter, r *http.Request) {
			WriteProblem(w, r, refuseFor(time.Minute, CodeRateLimited, "Too many requests from this client."))
		}))
}
