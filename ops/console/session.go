package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sessionLife is how long a browser stays signed in; the console's end ends every session.
const sessionLife = 12 * time.Hour

// sessions are the browsers that may operate the system.
type sessions struct {
	mu   sync.Mutex
	key  string               // of the link; "" once it was used
	ends map[string]time.Time // by the session's id
}

func newSessions() sessions { return sessions{key: rand.Text(), ends: map[string]time.Time{}} }

// SignIn is the path that begins a session for the first browser that opens it.
func (c *Console) SignIn() string {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	return "/session/" + c.sessions.key
}

// begin gives a session for the key of the link, once.
func (s *sessions) begin(key string) (id string, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) != 1 {
		return "", false
	}
	s.key, id = "", rand.Text()
	s.ends[id] = time.Now().Add(sessionLife)
	return id, true
}

func (s *sessions) has(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.ends[cookie.Value])
}

// cookieName differs from port to port: cookies do not, and two consoles on one machine would sign each other out.
func cookieName(r *http.Request) string {
	return "twinbox_console_" + r.Host[strings.LastIndexByte(r.Host, ':')+1:]
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	id, begun := c.sessions.begin(r.PathValue("key"))
	switch {
	case begun:
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(r), Value: id, Path: "/", MaxAge: int(sessionLife.Seconds()),
			HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	case !c.sessions.has(r):
		c.refuse(w, r)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// mayOperate says whether this browser may see and do what needs the services' token.
func (c *Console) mayOperate(r *http.Request) bool { return !c.cfg.ReadOnly && c.sessions.has(r) }

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
	c.page(w, r, http.StatusForbidden, "refused", "Not signed in", nil)
}
