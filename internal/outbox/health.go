package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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

const heldSQL = `
select topic, reason, extract(epoch from clock_timestamp() - parked_at)::float8
from public.outbox_parked
where not permanent and parked_at <= clock_timestamp() - $1 * interval '1 microsecond'
order by parked_at limit 1`

// CheckHeld is for a readiness check, on any instance. It fails if the events of a key have been held for longer than a
// time although the broker does not refuse them for good: their topic is gone, a right to it is missing, or one of its
// partitions has no leader, while others are published. A key that waits for an operator's release does not count.
func CheckHeld(ctx context.Context, db DB, limit time.Duration) error {
	rows, err := db.Query(ctx, heldSQL, limit.Microseconds())
	if err != nil {
		return fmt.Errorf("read held events: %w", err)
	}
	var topic, reason string
	var seconds float64
	tag, err := pgx.ForEachRow(rows, []any{&topic, &reason, &seconds}, func() error { return nil })
	switch {
	case err != nil:
		return fmt.Errorf("read held events: %w", err)
	case tag.RowsAffected() == 0:
		return nil
	}
	since := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	return fmt.Errorf("events for %s have been held for %s: %s", topic, since, reason)
}
