package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// states of a relay in which all is well.
const (
	stateLeading   = "leading"
	stateFollowing = "following a leader"
)

// health is the watchdog's memory: when it was last known that everything moves. That is so when the leader found
// nothing to publish or got something taken, and when a follower saw a lease that has not run out.
type health struct {
	limit time.Duration

	mu      sync.Mutex
	running bool
	wellAt  time.Time
	state   string
	err     error // since then
	refused error // why nothing is published until an operator acts
}

func (h *health) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.wellAt, h.state = true, time.Now(), "starting"
}

func (h *health) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
}

func (h *health) well(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wellAt, h.state, h.err, h.refused = time.Now(), state, nil, nil
}

func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *health) refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = err
}

// Healthy is for a readiness check. It fails if the relay does not run, while it publishes nothing because an operator
// has to act (see [RelayConfig.Topics]), or if for [RelayConfig.MaxSilence] nothing has
// moved although there was something to publish, rows of keys that were set aside included, or it was not even known
// whether there was: the broker is down, the publisher hangs, the database cannot be reached, nobody leads. It needs no
// connection of its own.
func (r *Relay) Healthy(context.Context) error {
	h := &r.health
	h.mu.Lock()
	defer h.mu.Unlock()
	silence := time.Since(h.wellAt)
	switch {
	case !h.running:
		return fmt.Errorf("outbox relay does not run")
	case h.refused != nil:
		return fmt.Errorf("outbox relay publishes nothing: %w", h.refused)
	case silence <= h.limit:
		return nil
	case h.err != nil:
		return fmt.Errorf("outbox relay: nothing moved for %s, was %s: %w", silence.Round(time.Second), h.state, h.err)
	}
	return fmt.Errorf("outbox relay: nothing moved for %s, was %s", silence.Round(time.Second), h.state)
}
