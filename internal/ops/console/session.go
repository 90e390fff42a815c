package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

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
