package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"
)

// contentPolicy lets a page bring its own style and nothing else.
const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// begin names the request and sets the headers of every answer. Nothing is stored by caches or shown in frames unless
// a handler says otherwise.
func begin(config Config, log *slog.Logger) func(http.Handler) http.Handler {
	proxies := config.proxies()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := newExchange(config, log)
			x.correlation(r.Header.Get("X-Correlation-Id"))
			x.client = identify(r, proxies)
			header := w.Header()
			header.Set("X-Request-Id", x.id)
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Content-Security-Policy", contentPolicy)
			header.Set("Referrer-Policy", "no-referrer") // a token in a query must not travel on
			header.Set("Cache-Control", "no-store")
			next.ServeHTTP(w, r.WithContext(x.in(r.Context())))
		})
	}
}

// observed counts a request and writes one line about it when it is answered or cut off, also by a panic.
func observed(m *metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			m.inFlight.Inc()
			defer func() {
				took := time.Since(began)
				m.observe(r, answer.Status(), took)
				logRequest(r, answer, took)
			}()
			defer answerPanic(answer, r)
			next.ServeHTTP(answer, r)
		})
	}
}

// logRequest names no address and no body, and the route instead of the path and its query, which may hold an id or a
// token.
func logRequest(r *http.Request, answer middleware.WrapResponseWriter, took time.Duration) {
	ctx, x := r.Context(), exchangeOf(r)
	attributes := []slog.Attr{
		slog.String("request_id", x.id),
		slog.String("correlation_id", x.follow),
		slog.String("method", methodLabel(r.Method)),
		slog.String("route", chi.RouteContext(ctx).RoutePattern()),
		slog.Int("status", answer.Status()),
		slog.Int("bytes", answer.BytesWritten()),
		slog.Duration("duration", took),
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		attributes = append(attributes, slog.String("trace_id", span.TraceID().String()))
	}
	if x.code != "" {
		attributes = append(attributes, slog.String("code", string(x.code)))
	}
	level := slog.LevelInfo
	if max(answer.Status(), x.status) >= http.StatusInternalServerError && !errors.Is(ctx.Err(), context.Canceled) {
		level = slog.LevelError
		attributes = append(attributes, slog.Any("error", x.cause))
	}
	x.log.LogAttrs(ctx, level, "request", attributes...)
}

// methodLabel keeps what a client made up out of logs.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return method
	}
	return "_OTHER"
}

// answerPanic, deferred, turns a panic into a 500, or cuts the connection when the answer has begun: half an answer
// must not look whole.
func answerPanic(answer middleware.WrapResponseWriter, r *http.Request) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked with, never wrapped
		panic(reason)
	}
	x := exchangeOf(r)
	x.log.ErrorContext(r.Context(), "panic in handler", slog.String("request_id", x.id),
		slog.String("panic", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
	if answer.Status() != 0 {
		panic(http.ErrAbortHandler)
	}
	WriteProblem(answer, r, fmt.Errorf("panic in handler: %v", reason))
}

// deadline ends the context of a request that takes too long. The handler answers, through [WriteProblem].
func deadline(timeout time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}
