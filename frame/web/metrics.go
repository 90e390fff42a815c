package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// noRoute is the route of a request for a path that does not exist.
const noRoute = "none"

// metrics counts requests and measures how long they take, by method, route and class of status: the path would be a
// label value per customer. What was refused before it had a route counts as well. Of an answer that was cut off it
// counts what had been said until then.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_server_requests_total", Help: "Requests answered, by class of status: 2xx, 4xx, 5xx.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_server_request_duration_seconds",
			Help:    "From a request's headers to the end of its answer.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_server_requests_in_flight", Help: "Requests that are being answered.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.requests, m.seconds, m.inFlight} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register http metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	m.inFlight.Dec()
	method, route := methodLabel(r.Method), routeOf(r)
	m.requests.WithLabelValues(method, route, statusClass(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
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
