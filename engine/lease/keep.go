package lease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// held is the claims of a runner, waiting for a worker or with one.
type held struct {
	mu     sync.Mutex
	claims map[*Claim]context.CancelCauseFunc
}

// add gives the context of the claim's attempt.
func (h *held) add(ctx context.Context, c *Claim) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims[c] = cancel
	return ctx
}

func (h *held) drop(c *Claim) { h.end(c, nil) }

func (h *held) end(c *Claim, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cancel := h.claims[c]; cancel != nil {
		cancel(cause)
		delete(h.claims, c)
	}
}

func (h *held) all() []*Claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.claims))
}

// beat renews the leases of everything that is held, in one statement, and ends the attempts whose lease is lost.
func (r *Runner) beat(ctx context.Context) {
	tick := time.NewTicker(r.leases.settings.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		claims := r.held.all()
		if len(claims) == 0 {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, r.leases.settings.Heartbeat)
		lost, err := r.leases.Heartbeat(asked, claims...)
		cancel()
		r.reportUnreachable(ctx, err)
		for _, c := range lost { // or finished a moment ago: then this changes nothing
			r.held.end(c, errLost)
		}
	}
}

// reportUnreachable tells that the database did not answer.
func (r *Runner) reportUnreachable(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "leases cannot be reached", "error", err)
	}
}

// reach is whether rows can be claimed.
type reach struct {
	mu    sync.Mutex
	err   error     // of the last claim
	since time.Time // of its first failure in a row
}

func (k *reach) heard(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && k.err == nil {
		k.since = time.Now()
	}
	k.err = err
}

// claimless is how long claims may fail before a runner is no longer healthy.
const claimless = 30 * time.Second

// Healthy is for a readiness check: it fails when the runner has been unable to claim anything for 30 s, so that no
// effect happens, and until a claim succeeds, which it then tries with every poll.
func (r *Runner) Healthy(context.Context) error { return r.reach.check(claimless) }

func (k *reach) check(limit time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil || time.Since(k.since) < limit {
		return nil
	}
	return fmt.Errorf("nothing can be claimed for %s: %w", time.Since(k.since).Round(time.Second), k.err)
}

// circuit slows a runner down while the other side of its effect cannot be reached.
type circuit struct {
	mu   sync.Mutex
	wait time.Duration
}

// probeMax is the longest pause between two attempts to reach the other side, and so the delay after its return.
const probeMax = 2 * time.Second

func (k *circuit) heard(result string, first time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch result {
	case "stale", "superseded": // says nothing about the other side
	case "unavailable":
		k.wait = min(max(k.wait*2, first), probeMax)
	default:
		k.wait = 0
	}
}

func (k *circuit) pause() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wait
}
