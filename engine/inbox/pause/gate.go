package pause

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Gates are where the deliveries of a process's consumers wait while they are paused. Each is shut until it is first
// known whether its consumer is.
type Gates struct {
	read   func(context.Context) (map[string]Paused, error)
	every  time.Duration
	failed func(error)
	asked  chan struct{}
	held   atomic.Int64
	paused atomic.Pointer[map[string]Paused] // nil: not known yet

	mu   sync.Mutex
	news chan struct{} // closed when paused is read anew
}

// NewGates makes gates that read tells whether to open, each time that so long has passed; see [Read]. failed hears of
// its errors.
func NewGates(
	read func(context.Context) (map[string]Paused, error), every time.Duration, failed func(error),
) *Gates {
	return &Gates{read: read, every: every, failed: failed, asked: make(chan struct{}, 1), news: make(chan struct{})}
}

// IsOpen says whether [Gates.Wait] would return at once. It takes no lock.
func (g *Gates) IsOpen(consumer string) bool {
	paused := g.paused.Load()
	if paused == nil {
		return false
	}
	_, is := (*paused)[consumer]
	return !is
}

// Held is how many callers wait.
func (g *Gates) Held() int64 { return g.held.Load() }

// Wait returns when the consumer is not paused, or with an error when ctx has ended.
func (g *Gates) Wait(ctx context.Context, consumer string) error {
	g.held.Add(1)
	defer g.held.Add(-1)
	for {
		g.mu.Lock()
		news := g.news // before looking, so that none between is missed
		g.mu.Unlock()
		if g.IsOpen(consumer) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("wait while the consumer is paused: %w", context.Cause(ctx))
		}
	}
}

// Look asks again at once, after a change in this process. It does not wait for the answer.
func (g *Gates) Look() {
	select {
	case g.asked <- struct{}{}:
	default:
	}
}

// Run opens and shuts the gates until ctx ends, and then returns nil. While there is no answer they stay as they are.
func (g *Gates) Run(ctx context.Context) error {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	for {
		paused, err := g.read(ctx)
		if err == nil {
			g.mu.Lock()
			g.paused.Store(&paused)
			close(g.news)
			g.news = make(chan struct{})
			g.mu.Unlock()
		} else if ctx.Err() == nil {
			g.failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-g.asked:
		}
	}
}
