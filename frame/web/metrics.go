package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// noRoute is the route of a request for a path that does not exist.
const noRoute = "none"

// newMeasured returns a middleware that counts requests and measures how long they take, by method, route and class of
// status: the path would be a label value per customer. What was refused before it had a route counts as well. Of an
// answer that was cut off it counts what had been said until then.
func newMeasured(registerer prometheus.Registerer) (func(http.Handler) http.Handler, error) {
	if registerer == nil {
		return func(next http.Handler) http.Handler { return next }, nil
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "http_server_requests_total", Help: "Requests answered, by class of status: 2xx, 4xx, 5xx.",
	}, []string{"method", "route", "status"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "http_server_request_duration_seconds",
		Help:    "From a request's headers to the end of its answer.",
		Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}, []string{"method", "route"})
	inFlight := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "http_server_requests_in_flight", Help: "Requests that are being answered.",
	})
	for _, collector := range []prometheus.Collector{requests, seconds, inFlight} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register http metrics: %w", err)
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			inFlight.Inc()
			defer func() { // also when the handler panics to cut the answer off
				inFlight.Dec()
				method, route := methodLabel(r.Method), routeOf(r)
				requests.WithLabelValues(method, route, statusClass(answer.Status())).Inc()
				seconds.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
			}()
			next.ServeHTTP(answer, r)
		})
	}, nil
}

// routeOf is the pattern that the request matched; it is known once the router has run.
func routeOf(r *http.Request) string {
	if route := chi.RouteContext(r.Context()).RoutePattern(); route != "" {
		return route
	}
	return noRoute
}

func statusClass(status int) string {
	if status == 0 {
		status = http.StatusOK // what net/http sends for a handler that said nothing
	}
	return strconv.Itoa(status/100) + "xx"
}
