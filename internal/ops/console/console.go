// Package console is the operators' page: where the system's events are, why they wait, and what to do about dead
// letters. It is a client of the services' admin listeners, as the command line is, and serves any number of viewers
// from one poll per service.
//
// The services' token stays in the process. A browser that has no session sees the flow, which the listeners show
// without the token; everything else needs the session that the one-time link of [Console.SignIn] begins. Nothing is
// changed that was not tried as a dry run first, and without a reason and a name. History is kept for 15 minutes, in
// memory alone.
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

// Config says what a console shows.
type Config struct {
	Services []*client.Service // in the order of the page
	// ReadOnly says that there is no token: then the flow is all there is.
	ReadOnly bool
	Links    []Link // other pages of the system
	Dir      string // the folder in which twinbox verify stores its report
	// APIs are the addresses of services' own APIs, by the service's name. Default: what their documents say.
	APIs  map[string]string
	Hosts []string // names under which the console may be asked, beside localhost and IP addresses
	Log   *slog.Logger
	// Interval is how often each service is asked while there are viewers. Default: 1 s. Without viewers it is five times
	// as long.
	Interval time.Duration
}

// Link leads to another page.
type Link struct{ Title, URL string }

// Console is a console. Its methods may be called from any goroutine.
type Console struct {
	cfg     Config
	flow    *flow
	changes *changes
	session session
	life    context.Context // ends when Run is told to stop: changes end
	end     context.CancelFunc
}

// New makes a console that has not asked a service yet.
func New(cfg Config) *Console {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	c := &Console{
		cfg: cfg, flow: &flow{cfg: cfg, samples: map[string][]sample{}, routes: map[route]bool{}},
		session: session{key: rand.Text()},
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.changes = &changes{Console: c, all: map[int]*outcome{}}
	return c
}

// Run asks the services and answers on the listener, which it owns, until ctx ends. It is called once.
func (c *Console) Run(ctx context.Context, ln net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, c.end)
	group.Go(func() error { return c.flow.run(ctx) })
	group.Go(func() error {
		defer c.changes.running.Wait()
		return web.NewServer(web.ServerConfig{}, c.handler(), c.cfg.Log).Serve(ctx, ln)
	})
	return group.Wait()
}

// pagePolicy lets a page load what this program serves, and nothing else. Charts set styles through the DOM, which
// needs no exception.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// handler answers every request. A page elsewhere can neither read through a name of its own nor post through a
// visitor's browser.
func (c *Console) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/", serveAsset)
	mux.HandleFunc("GET /session/{key}", c.signIn)
	mux.HandleFunc("GET /{$}", c.shows(c.showFlow))
	mux.HandleFunc("GET /", c.shows(func(*http.Request) (content, error) {
		return content{}, missing("there is no such page")
	}))
	mux.HandleFunc("GET /history", c.showHistory)
	mux.HandleFunc("GET /apis", c.shows(apiPages{c}.showAll))
	mux.HandleFunc("GET /apis/{service}/{api}", c.shows(apiPages{c}.show))
	for pattern, show := range map[string]http.HandlerFunc{
		"GET /dead-letters": c.shows(c.showGroups), "GET /dead-letters/{service}": c.shows(c.showDeadLetters),
		"GET /dead-letters/{service}/{id}": c.shows(c.showDeadLetter), "GET /mails": c.shows(c.showMails),
		"GET /lost":  c.shows(c.showLost),
		"GET /audit": c.shows(c.showAudit), "GET /events/{id}": c.shows(c.showStory), "GET /find": find,
		"POST /changes/dry-run": c.changes.try, "POST /changes": c.changes.begin, "GET /operations/{id}": c.changes.follow,
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

// sessionLife is how long a browser stays signed in; the console's end ends its session.
const sessionLife = 12 * time.Hour

// session is that of the one browser that may operate the system: the first that opens the link.
type session struct {
	mu   sync.Mutex
	key  string // of the link; "" once it was used
	id   string
	ends time.Time
}

// SignIn is the path that begins a session for the first browser that opens it.
func (c *Console) SignIn() string {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return "/session/" + c.session.key
}

// begin gives the session's id for the key of the link, once.
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

// cookieName differs from port to port: cookies do not, and two consoles on one machine would sign each other out.
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

// mayOperate says whether this browser may see and do what needs the services' token.
func (c *Console) mayOperate(r *http.Request) bool { return !c.cfg.ReadOnly && c.session.has(r) }

// operator passes on requests with a session.
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
	c.page(w, r, http.StatusForbidden, content{"refused", "Not signed in", nil})
}
