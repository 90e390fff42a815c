package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// lists are the newest answers to browsers that ask again for a list that they have. Each serves all of them for as
// long as a poll of the flow does: many viewers cost a service what one does.
type lists struct {
	life time.Duration

	mu      sync.Mutex
	answers map[string]*listAnswer // by address
}

// listAnswer is a page as it was at a time.
type listAnswer struct {
	asked  time.Time
	ready  chan struct{} // closed when what follows is there
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *listAnswer) Header() http.Header            { return a.header }
func (a *listAnswer) WriteHeader(status int)         { a.status = status }
func (a *listAnswer) Write(text []byte) (int, error) { return a.body.Write(text) }

// listTimeout is how long a service may take for a list that many wait for.
const listTimeout = 30 * time.Second

// look gives the newest answer of show to the request. It is asked for anew when it is too old.
func (l *lists) look(r *http.Request, show http.HandlerFunc) *listAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for address, a := range l.answers {
		if now.Sub(a.asked) >= l.life {
			delete(l.answers, address)
		}
	}
	address := r.URL.RequestURI()
	if a := l.answers[address]; a != nil {
		return a
	}
	a := &listAnswer{asked: now, ready: make(chan struct{}), status: http.StatusOK, header: http.Header{}}
	l.answers[address] = a
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), listTimeout) // others wait for it, too
	again := r.Clone(ctx)
	go func() {
		defer close(a.ready)
		defer cancel()
		show(a, again)
	}()
	return a
}

// live answers browsers that have the page already with 304 while it is the same. All operators see the same.
func (c *Console) live(show http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		known := r.Header.Get("If-None-Match")
		if known == "" {
			show(w, r)
			return
		}
		a := c.lists.look(r, show)
		select {
		case <-a.ready:
		case <-r.Context().Done():
			return
		}
		tag := a.header.Get("ETag")
		w.Header().Set("ETag", tag)
		if tag == known {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", a.header.Get("Content-Type"))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body.Bytes()) // the browser may be gone
	}
}

// tagOf is the validator of a page's body.
func tagOf[T ~string](body T) string {
	hash := sha256.Sum256([]byte(body))
	return `"` + hex.EncodeToString(hash[:8]) + `"`
}
