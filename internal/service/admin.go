package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/twinbox/internal/web"
)

type AdminConfig struct {
	Log *slog.Logger

	// Draining makes /readyz answer 503 once closed. Optional.
	Draining <-chan struct{}

	// Hosts may be asked besides localhost and IP addresses. Others get 421.
	Hosts []string

	// CheckTimeout bounds each readiness check. Default 2 s.
	CheckTimeout time.Duration
}

// Admin is the listener for operators and probes:
//
//	/livez             200 as long as the process answers. It asks no server.
//	/readyz            200 when every check passes, else 503; JSON with reasons and causes.
//	/readyz?only=NAME  the named checks only
//	/metrics           for Prometheus
//	/openapi.json      the service's own API, if any
//
// It has no access control: keep it on loopback or a private network.
type Admin struct {
	*http.ServeMux

	cfg      AdminConfig
	registry *prometheus.Registry

	checks  []*check
	reasons []*Shared[[]Cause]
}

// NewAdmin returns a listener without checks.
func NewAdmin(cfg AdminConfig) *Admin {
	cfg.CheckTimeout = cmp.Or(cfg.CheckTimeout, 2*time.Second)
	a := &Admin{cfg: cfg, ServeMux: http.NewServeMux(), registry: prometheus.NewRegistry()}
	a.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	a.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "alive") })
	a.HandleFunc("GET /readyz", a.ready)
	a.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return a
}

func (a *Admin) Registry() *prometheus.Registry { return a.registry }

// Check adds a readiness check, before Serve. Clients see its error, so it must hold no secret. A check that ignores
// its context fails, and is not run twice.
func (a *Admin) Check(name string, run func(ctx context.Context) error) {
	a.checks = append(a.checks, &check{name, Shared[struct{}]{
		Timeout: a.cfg.CheckTimeout,
		Ask:     func(ctx context.Context) (none struct{}, err error) { return none, run(ctx) },
	}})
}

// Document adds the OpenAPI document of the API, as JSON.
func (a *Admin) Document(document []byte) {
	a.HandleFunc("GET "+web.DocumentPath, web.Document(document))
}

// Serve answers until ctx is cancelled. Requests under way get a second to end.
func (a *Admin) Serve(ctx context.Context, ln net.Listener) error {
	server := &web.Server{
		Handler: web.ForHosts(a.cfg.Hosts, "in ADMIN_HOSTS", a), Log: a.cfg.Log,
		WriteTimeout: time.Minute, MaxConnections: web.ShareDescriptors(16), DrainTimeout: time.Second,
	}
	if err := server.Serve(ctx, ln); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve admin: %w", err)
	}
	return nil
}
