package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// Relay publishes the outbox's events. Any number may run against one database; one of them leads.
//
// Guaranteed: the publisher has acknowledged every committed event before the cursor passes it. Per key and topic,
// first occurrences are in the order of versions. Not guaranteed: that an event is sent once, an order across keys.
type Relay struct {
	cfg     Config
	metrics *metrics
	health  health
	checked bool         // a session passed all checks once, so a refusal may pass
	call    *publishCall // the last one; it may outlive its session

	notified notification // a follower's last one to the leader
}

// New returns a [*CheckError] that lists everything wrong with the configuration. It connects to nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register relay metrics: %w", err)
	}
	return &Relay{cfg: cfg, metrics: m}, nil
}

// goodSession is the longest pause between two sessions, and the shortest life of a good one.
const goodSession = 5 * time.Second

// Run relays until ctx ends. Then it waits for the page under way, records it, and returns nil. It returns earlier only
// with a [*CheckError], before a session has passed all checks.
func (r *Relay) Run(ctx context.Context) error {
	r.health.set(stateStarting, time.Now())
	defer r.health.set("", time.Time{})
	pauses := failure.Backoff{Min: 50 * time.Millisecond, Max: goodSession}
	for ; ctx.Err() == nil; _ = failure.Sleep(ctx, pauses.Next()) {
		began := time.Now()
		err := r.runSession(ctx)
		r.metrics.leader.Set(0)
		if ctx.Err() != nil {
			break
		}
		if _, refused := errors.AsType[*CheckError](err); refused && !r.checked {
			return err
		}
		r.health.fail(err)
		r.metrics.sessions.Inc()
		r.cfg.Log.Warn("relay session ended", "error", err)
		if time.Since(began) > goodSession {
			pauses.Reset()
		}
	}
	if err := r.call.wait(r.cfg.PublishTimeout); err != nil {
		return fmt.Errorf("stop relay: %w", err)
	}
	return nil
}

func (r *Relay) runSession(ctx context.Context) error {
	if err := r.call.wait(r.cfg.PublishTimeout); err != nil { // of the last session
		return err
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer closeSession(ctx, conn)
	r.checked = true
	if err := r.awaitLock(ctx, conn); err != nil {
		return err
	}
	l, err := r.lead(ctx, conn)
	if err != nil {
		return err
	}
	return l.run(ctx)
}

const (
	followEvery = 500 * time.Millisecond
	// notifyEvery is the least time between two notifications: each makes all commits of the cluster wait for one lock.
	notifyEvery = 20 * time.Millisecond
	// notifyAgain is that time for a leader that may have frozen. Notifications that nobody reads fill a unix socket,
	// and then idle_session_timeout does not end the server's process.
	notifyAgain = 500 * time.Millisecond
)

func (r *Relay) awaitLock(ctx context.Context, conn *pgx.Conn) error {
	for {
		leads, err := tryLock(ctx, conn)
		if leads || err != nil {
			return err
		}
		r.health.set(stateFollowing, time.Now())
		if err := r.follow(ctx, conn, min(followEvery, r.cfg.Lease/3)); err != nil {
			return err
		}
	}
}

func (r *Relay) follow(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	wake := r.cfg.Wake
	if !r.cfg.Listen {
		wake = nil
	}
	for waiting.Err() == nil {
		if !r.notified.isDue {
			select {
			case <-wake:
				r.notified.isDue = true
			case <-waiting.Done():
				continue
			}
		}
		if err := r.notifyLeader(ctx, conn); err != nil {
			return err
		}
		_ = failure.Sleep(waiting, notifyEvery)
	}
	return ctx.Err()
}

// Healthy is for a readiness check. It fails if the relay does not run, has never led or followed, or if no event moved
// for [Config.MaxSilence] although some may wait. A paused relay is healthy.
func (r *Relay) Healthy(context.Context) error {
	h := &r.health
	h.mu.Lock()
	defer h.mu.Unlock()
	silence := time.Since(h.wellAt)
	switch {
	case h.state == "":
		return errors.New("outbox relay does not run")
	case silence > r.cfg.MaxSilence:
		return fmt.Errorf("outbox relay: no event moved for %s, it was %s: %w",
			silence.Round(time.Second), h.state, cmp.Or(h.err, errNoReason))
	case h.state == stateStarting:
		return errors.New("outbox relay has neither led nor seen a leader yet")
	}
	return nil
}

var errNoReason = errors.New("no error is known")

const (
	stateStarting  = "starting"
	stateLeading   = "leading"
	stateFollowing = "following a leader"
)

// health remembers when all was well: no event to publish, a record taken, or a leader seen by a follower.
type health struct {
	mu     sync.Mutex
	state  string
	wellAt time.Time
	err    error // since then
}

func (h *health) set(state string, wellAt time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state, h.err = state, nil
	if !wellAt.IsZero() {
		h.wellAt = wellAt
	}
}

func (h *health) well() { h.set(stateLeading, time.Now()) }

func (h *health) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}
