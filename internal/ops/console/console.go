// Package console is the operators' page, a client of the services' admin listeners. One poll per service serves all
// viewers. The services' token stays in the process: a browser without a session ([Console.SignIn]) sees only the flow.
package console

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/web"
)

// Config configures a [Console].
type Config struct {
	Services []*client.Service // in the order of the page
	// ReadOnly means that there is no token: the console shows only the flow.
	ReadOnly bool
	Links    []Link   // other pages of the system
	Hosts    []string // names under which the console may be asked, besides localhost and IP addresses
	// Dir is the folder with the report of "twinbox verify" of these services. Empty: there is none.
	Dir string
	Log *slog.Logger
	// Interval is the time between polls of a service, five times as long without viewers. Default: 1 s.
	Interval time.Duration
}

type Link struct{ Title, URL string }

// Console is safe for concurrent use.
type Console struct {
	cfg     Config
	flow    *flow
	changes changes
	session session
}

// New makes a console. It does not ask a service yet.
func New(cfg Config) *Console {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	return &Console{
		cfg: cfg, flow: newFlow(cfg), changes: changes{tried: map[string]*change{}}, session: session{key: rand.Text()},
	}
}

// Run polls the services and serves the listener, which it owns, until ctx ends. Changes end with it. Call it once.
func (c *Console) Run(ctx context.Context, ln net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	c.changes.life = ctx
	group.Go(func() error { return c.flow.run(ctx) })
	group.Go(func() error {
		defer c.changes.running.Wait()
		return (&web.Server{Handler: c.handler(), Log: c.cfg.Log}).Serve(ctx, ln)
	})
	return group.Wait()
}

// pagePolicy lets a page load only this program's files.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// handler refuses other host names and posts from other sites: a foreign page must not use a visitor's browser.
func (c *Console) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.FileServerFS(assetFiles))
	mux.HandleFunc("GET /session/{key}", c.signIn)
	mux.HandleFunc("GET /{$}", c.shows(c.showFlow))
	mux.HandleFunc("GET /", c.shows(func(*http.Request) (content, error) {
		return content{}, missing("there is no such page")
	}))
	for pattern, show := range map[string]http.HandlerFunc{
		"GET /dead-letters": c.shows(c.showGroups), "GET /dead-letters/{service}": c.shows(c.showDeadLetters),
		"GET /dead-letters/{service}/{id}": c.shows(c.showDeadLetter), "GET /mails": c.shows(c.showMails),
		"GET /lost":  c.shows(c.showLost),
		"GET /audit": c.shows(c.showAudit), "GET /events/{id}": c.shows(c.showStory), "GET /find": find,
		"POST /changes": c.tryChange, "POST /changes/{id}": c.beginChange, "GET /changes/{id}": c.followChange,
		"POST /changes/{id}/stop": c.stopChange,
	} {
		mux.HandleFunc(pattern, c.operator(show))
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
	return web.ForHosts(c.cfg.Hosts, "with --host of twinbox console", http.NewCrossOriginProtection().Handler(page))
}
