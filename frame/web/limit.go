package web

import (
	"net/http"
	"sync"
	"time"
)

// maxClients bounds the memory of a limiter: about 10 MB.
const maxClients = 100_000

// limiter counts requests per client in a sliding window: those of the present window, and of the one before as much as
// still lies within. Clients beyond maxClients in a window take the place of others, whose count begins anew: who
// commands that many addresses is not held back by a limit per address.
type limiter struct {
	limit  int
	window time.Duration

	mu                sync.Mutex
	began             time.Time // the present window
	present, previous map[string]int
}

func newLimiter(limit int, window time.Duration) *limiter {
	return &limiter{limit: limit, window: window, present: map[string]int{}}
}

// allow counts a request, unless the client has used its share.
func (l *limiter) allow(client string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := now.Sub(l.began)
	switch {
	case passed >= 2*l.window:
		l.began, l.present, l.previous = now, map[string]int{}, nil
		passed = 0
	case passed >= l.window:
		l.began, l.present, l.previous = l.began.Add(l.window), map[string]int{}, l.present
		passed -= l.window
	}
	before := float64(l.previous[client]) * float64(l.window-passed) / float64(l.window)
	count, known := l.present[client]
	if before+float64(count) >= float64(l.limit) {
		return false
	}
	if !known && len(l.present) >= maxClients {
		for other := range l.present {
			delete(l.present, other)
			break
		}
	}
	l.present[client] = count + 1
	return true
}

// limited refuses what one client asks beyond its share.
func limited(config Config) func(http.Handler) http.Handler {
	if config.RateLimit == 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	limit := newLimiter(config.RateLimit, config.RateWindow)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !limit.allow(ClientOf(r), time.Now()) {
				WriteProblem(w, r, refuseFor(config.RateWindow, CodeRateLimited, "Too many requests from this client."))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
