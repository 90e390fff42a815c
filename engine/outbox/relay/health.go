package relay

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// states of a relay; in the last two all is well.
const (
	stateStarting  = "starting" // it has neither led nor seen a leader
	stateLeading   = "leading"
	stateFollowing = "following a leader"
)

// health keeps when it was last known that everything moves. That is so when the leader found
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
	h.running, h.wellAt, h.state = true, time.Now(), stateStarting
}

func (h *health) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
}

// markLeading says that it holds the lease, whether or not anything moves yet.
func (h *health) markLeading() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = stateLeading
}

func (h *health) markWell(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wellAt, h.state, h.err, h.refused = time.Now(), state, nil, nil
}

func (h *health) markFailed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *health) markRefused(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = err
}

// check is [Relay.Healthy].
func (h *health) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	silence := time.Since(h.wellAt)
	switch {
	case !h.running:
		return errors.New("outbox relay does not run")
	case h.refused != nil:
		return fmt.Errorf("outbox relay publishes nothing: %w", h.refused)
	case silence <= h.limit && h.state == stateStarting:
		return errors.New("outbox relay has neither led nor seen a leader yet")
	case silence <= h.limit:
		return nil
	case h.err != nil:
		return fmt.Errorf("outbox relay: nothing moved for %s, was %s: %w", silence.Round(time.Second), h.state, h.err)
	}
	return fmt.Errorf("outbox relay: nothing moved for %s, was %s", silence.Round(time.Second), h.state)
}
