package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// Config bounds one request.
type Config struct {
	// MapError translates a service's errors, and returns nil for others. Optional.
	MapError func(error) *Error
	// MaxBodyBytes is the longest body that [Decode] reads. Default 64 KiB.
	MaxBodyBytes int64
	// RequestTimeout ends a handler's context, body included. Default 5 s.
	RequestTimeout time.Duration
	// CheckBody is the last check of each body that [Decode] reads. Optional.
	CheckBody func(r *http.Request, body []byte) error
	// Document is the API's, for GET /openapi.json. Optional.
	Document []byte
	// RateLimit bounds a client's requests per minute and instance; see [ClientOf]. 0: off.
	RateLimit int
	// TrustedProxies are the networks whose X-Forwarded-For is trusted. Default: none.
	TrustedProxies []netip.Prefix
	// Registerer gets the metrics http_server_*. Optional.
	Registerer prometheus.Registerer
	// Traces makes each request's span. Default: OpenTelemetry's global provider.
	Traces trace.TracerProvider
}

// WithDefaults replaces zero values.
func (c Config) WithDefaults() Config {
	if c.MapError == nil {
		c.MapError = func(error) *Error { return nil }
	}
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, 64<<10)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	if c.Traces == nil {
		c.Traces = otel.GetTracerProvider()
	}
	return c
}

// NewRouter returns a router that traces, logs and limits requests and catches panics. Unknown paths and methods get
// problems. A GET handler does not answer HEAD. OPTIONS answers 204 with Allow.
func NewRouter(config Config, log *slog.Logger) *chi.Mux {
	config = config.WithDefaults()
	metrics := promauto.With(config.Registerer)
	o := &observer{
		config: config, log: log,
		tracer: config.Traces.Tracer("example.com/twinbox/internal/web"),
		requests: metrics.NewCounterVec(prometheus.CounterOpts{
			Name: "http_server_requests_total", Help: "Requests answered, by class of status: 2xx, 4xx, 5xx.",
		}, []string{"method", "route", "status"}),
		seconds: metrics.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_server_request_duration_seconds",
			Help:    "From a request's headers to the end of its answer.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"method", "route"}),
		inFlight: metrics.NewGauge(prometheus.GaugeOpts{
			Name: "http_server_requests_in_flight", Help: "Requests that are being answered.",
		}),
	}
	r := chi.NewRouter()
	r.Use(o.wrap)
	useClientIP(r, config.TrustedProxies)
	if config.RateLimit > 0 {
		r.Use(limitRate(config.RateLimit))
	}
	r.NotFound(func(w http.ResponseWriter, req *http.Request) {
		WriteProblem(w, req, refuse(CodeNotFound, "There is nothing at this path."))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { otherMethod(r, w, req) })
	if config.Document != nil {
		r.Get(DocumentPath, Document(config.Document))
	}
	return r
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions, http.MethodTrace, http.MethodConnect,
}

// otherMethod gets unknown methods of unknown paths, too.
func otherMethod(routes *chi.Mux, w http.ResponseWriter, r *http.Request) {
	path := cmp.Or(r.URL.RawPath, r.URL.Path)
	taken := slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
		return method == http.MethodOptions || !routes.Match(chi.NewRouteContext(), method, path)
	})
	if len(taken) == 0 {
		routes.NotFoundHandler()(w, r)
		return
	}
	allowed := strings.Join(append(taken, http.MethodOptions), ", ")
	w.Header().Set("Allow", allowed)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	WriteProblem(w, r, refuse(CodeMethodNotAllowed, "This path takes "+allowed+"."))
}
