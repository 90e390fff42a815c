package pause

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Gate is where a consumer's deliveries wait while it is paused. It is shut until it is first known whether it is.
type Gate struct {
	open   atomic.Bool
	held   atomic.Int64
	mu     sync.Mutex
	opened chan struct{} // closed when it opens
}

func newGate() *Gate { return &Gate{opened: make(chan struct{})} }

// IsOpen says whether [Gate.Wait] would return at once. It costs one load.
func (g *Gate) IsOpen() bool { return g.open.Load() }

// Held is how many callers wait.
func (g *Gate) Held() int64 { return g.held.Load() }

// Wait returns when the consumer is not paused, or with an error when ctx has ended.
func (g *Gate) Wait(ctx context.Context) error {
	g.held.Add(1)
	defer g.held.Add(-1)
	for !g.open.Load() {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return fmt.Errorf("wait while the consumer is paused: %w", context.Cause(ctx))
		}
	}
	return nil
}

// set opens or shuts the gate.
//
//	Wait  finds the gate shut, takes the channel
//	set   opens: closes that channel
//	set   shuts: makes a new one
//	Wait  is woken, finds the gate shut, takes the new one
func (g *Gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.open.Load():
		g.open.Store(true)
		close(g.opened)
	case !open && g.open.Load():
		g.opened = make(chan struct{})
		g.open.Store(false)
	}
}

// Gates are those of a process's consumers.
type Gates struct {
	read  func(context.Context) (map[string]Paused, error)
	asked chan struct{}
	mu    sync.Mutex
	all   map[string]*Gate
}

// NewGates makes gates that read tells whether to open; see [Read].
func NewGates(read func(context.Context) (map[string]Paused, error)) *Gates {
	return &Gates{read: read, asked: make(chan struct{}, 1), all: map[string]*Gate{}}
}

// Of is the consumer's gate.
func (g *Gates) Of(consumer string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := g.all[consumer]
	if gate == nil {
		gate = newGate()
		g.all[consumer] = gate
	}
	return gate
}

// Look asks again at once, after a change in this process. It does not wait for the answer.
func (g *Gates) Look() {
	select {
	case g.asked <- struct{}{}:
	default:
	}
}

// Watch opens and shuts the gates until ctx ends, and asks each time that interval has passed. While there is no answer
// they stay as they are; failed hears of that.
func (g *Gates) Watch(ctx context.Context, interval time.Duration, failed func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		paused, err := g.read(ctx)
		if err == nil {
			g.set(paused)
		} else if ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-g.asked:
		}
	}
}

func (g *Gates) set(paused map[string]Paused) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for consumer, gate := range g.all {
		_, is := paused[consumer]
		gate.set(!is)
	}
}
