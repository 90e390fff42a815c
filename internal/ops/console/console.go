// Package console is the operators' page, a client of the services' admin listeners. One poll per service serves all
// viewers. The services' token stays in the process: a browser without the session that [Console.SignIn] begins sees
// only the flow. Memory holds 15 minutes of history.
package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
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
	// Dir is the folder with the report of "twinbox verify". Default: the working directory.
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
	changes *changes
	session session
	life    context.Context // ends with the context of Run, and changes end with it
	end     context.CancelFunc
}

// New makes a console. It does not ask a service yet.
func New(cfg Config) *Console {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	c := &Console{cfg: cfg, flow: newFlow(cfg), session: session{key: rand.Text()}}
	c.life, c.end = context.WithCancel(context.Background())
	c.changes = &changes{Console: c, all: map[string]*change{}}
	return c
}

// Run polls the services and serves the listener, which it owns, until ctx ends. Call it once.
func (c *Console) Run(ctx context.Context, ln net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, c.end)
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
		"POST /changes": c.changes.try, "POST /changes/{id}": c.changes.begin, "GET /changes/{id}": c.changes.follow,
		"POST /changes/{id}/stop": c.changes.stop,
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

const sessionLife = 12 * time.Hour

// The session belongs to the first browser that opens the link.
type session struct {
	mu   sync.Mutex
	key  string // of the link; "" once it was used
	id   string
	ends time.Time
}

// SignIn returns the path that begins a session of twelve hours, once.
func (c *Console) SignIn() string {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return "/session/" + c.session.key
}

func (s *session) begin(key string) (id string, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == "" || !same(key, s.key) {
		return "", false
	}
	s.key, s.id, s.ends = "", rand.Text(), time.Now().Add(sessionLife)
	return s.id, true
}

func (s *session) has(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return same(cookie.Value, s.id) && time.Now().Before(s.ends)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// cookieName has the port, which cookies ignore: two consoles on one machine would sign each other out.
func cookieName(r *http.Request) string {
	return "twinbox_console_" + r.Host[strings.LastIndexByte(r.Host, ':')+1:]
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	id, begun := c.session.begin(r.PathValue("key"))
	switch {
	case begun:
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(r), Value: id, Path: "/", MaxAge: int(sessionLife.Seconds()),
			HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	case !c.session.has(r):
		c.refuse(w, r)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *Console) mayOperate(r *http.Request) bool { return !c.cfg.ReadOnly && c.session.has(r) }

func (c *Console) operator(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.mayOperate(r) {
			c.refuse(w, r)
			return
		}
		next(w, r)
	}
}

func (c *Console) refuse(w http.ResponseWriter, r *http.Request) {
	_, noCookie := r.Cookie(cookieName(r))
	c.page(w, r, http.StatusForbidden, content{"refused", "Not signed in", noCookie == nil}) // true: signed in once
}
