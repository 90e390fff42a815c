package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/restore"
	"example.com/twinbox/internal/outbox/window"
)

// Relay publishes the outbox's events. Any number may run against one database; one of them leads.
//
// Guaranteed: every committed event reaches the publisher at least once and is acknowledged by it before the cursor
// passes it; per key and topic, first occurrences are in the order of versions, through failures, restarts and hangs.
// Not guaranteed: that an event is sent once, nor any order across keys.
type Relay struct {
	cfg       Config
	metrics   *metrics
	health    health
	publisher EventPublisher
	pages     *window.Pager
	// sendingTime is after how long a flight counts as lost: after the publisher's own time, before the lease is over.
	sendingTime time.Duration
	led         int64 // the epoch of its last term; 0: it never led
	ready       bool  // a session passed all checks once: what is wrong later may pass

	// flight is the last one that was launched. At most one is in the air, and it may outlive its session.
	flight *flight
	// unrecorded was taken and is not yet recorded. It outlives sessions: a page that has to be read again because the
	// database went away is not sent again.
	unrecorded []receipt
}

// New returns a [*outbox.CheckError] that lists everything wrong with the configuration. It connects to nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	own := prometheus.NewRegistry()
	publisher, is := cfg.Publisher.(EventPublisher)
	if !is {
		publisher = messagePublisher{cfg.Publisher}
	}
	r := &Relay{
		cfg: cfg, metrics: newMetrics(own), publisher: publisher,
		pages:       window.NewPager(cfg.BatchSize, batchBytes),
		sendingTime: cfg.PublishTimeout + (cfg.Lease-cfg.PublishTimeout)/2,
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(own); err != nil {
			return nil, fmt.Errorf("register relay metrics: %w", err)
		}
	}
	return r, nil
}

// retryMax is the longest pause between two sessions. A session that has lasted for longer was a good one.
const retryMax = 5 * time.Second

// Run relays until ctx ends, then lets a call of Publish that is under way end, records what it achieved, gives the
// lease back, if it still has its session, and returns nil. It returns earlier only with a [*outbox.CheckError], before
// it has led for the first time: a server or a schema on which events would be lost. Everything else is tried again,
// for ever.
func (r *Relay) Run(ctx context.Context) error {
	r.health.markWell(stateStarting)
	defer r.health.set(func(h *health) { h.state = stateStopped })
	pauses := failure.Backoff{Min: 50 * time.Millisecond, Max: retryMax}
	for ; ctx.Err() == nil; _ = failure.Sleep(ctx, pauses.Next()) {
		began := time.Now()
		err := r.runSession(ctx)
		r.metrics.leader.Set(0)
		if ctx.Err() != nil {
			break
		}
		if _, refused := errors.AsType[*outbox.CheckError](err); refused && !r.ready {
			return err
		}
		r.health.markFailed(err)
		r.metrics.sessions.Inc()
		r.cfg.Log.Warn("relay session ended", "error", err)
		if time.Since(began) > retryMax {
			pauses.Reset()
		}
	}
	if late := r.flight.wait(context.WithoutCancel(ctx), r.cfg.PublishTimeout); late != nil {
		return fmt.Errorf("stop relay: %w", late)
	}
	return nil
}

// runSession is one connection's life: follow, lead, end. Its error is never nil unless ctx ended.
func (r *Relay) runSession(ctx context.Context) error {
	if err := r.flight.wait(ctx, math.MaxInt64); err != nil { // the last session's, hanging in the publisher
		return err
	}
	_, _ = r.collect(r.flight)
	conn, err := connect(ctx, r.cfg.Connect)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	r.ready = true
	s := &session{conn: conn}
	if err := r.awaitTerm(ctx, s); err != nil {
		return err
	}
	r.led = s.term.Epoch
	r.health.set(func(h *health) { h.state = stateLeading }) // it holds the lease, whether or not anything moves yet
	r.cfg.Log.Info("relay leads", "epoch", s.term.Epoch, "leader", r.cfg.Name)
	r.metrics.leader.Set(1)
	r.metrics.epoch.Set(float64(s.term.Epoch))
	l, err := r.newLeader(ctx, s)
	if err == nil {
		err = l.run(ctx)
	}
	if ctx.Err() != nil && !conn.IsClosed() && r.flight.wait(ctx, 0) == nil {
		_ = s.do(ctx, s.release) // or the lease runs out
	}
	return err
}

const (
	// followEvery is how soon a follower sees that the leader's session has ended. Each time it asks with a statement.
	followEvery = 650 * time.Millisecond
	// returnGrace is how long a follower leaves the lease to a leader that has lost its session and lives: it comes back
	// with a new one and need not send again what it remembers. Of a dead one it is lost time.
	returnGrace = 100 * time.Millisecond
)

// awaitTerm follows until no relay leads. A follower reads the lease and tries the leader's lock often enough to take
// over soon after the end of either.
func (r *Relay) awaitTerm(ctx context.Context, s *session) error {
	for before := (leadership{}); ; {
		var seen leadership
		err := s.do(ctx, func(ctx context.Context) (err error) {
			if seen, err = readLeadership(ctx, s.conn); err == nil && r.mayLead(before, seen) {
				err = s.acquire(ctx, r.cfg.Name, r.cfg.Lease, seen)
			}
			return err
		})
		if err != nil || s.term != nil {
			return err
		}
		if seen.remaining > 0 {
			r.health.markWell(stateFollowing)
		}
		fault.Here("relay.follow")
		pause := min(followEvery, r.cfg.PollMax)
		if seen.ended {
			pause = returnGrace
		}
		if err := r.follow(ctx, s, max(min(seen.remaining, pause), time.Millisecond)); err != nil {
			return err
		}
		before = seen
	}
}

// mayLead decides after two readings. This relay may lead if none does; if it was itself the last, since none has led
// while the epoch is the one it had; and if the leader's session had ended already at the reading before.
func (r *Relay) mayLead(before, seen leadership) bool {
	return seen.remaining <= 0 || r.led > 0 && r.led == seen.epoch ||
		seen.ended && before.ended && before.epoch == seen.epoch
}

// notifyEvery is the least time between two notifications. One in every writing transaction would make all commits of
// the cluster wait for one lock.
const notifyEvery = 20 * time.Millisecond

const notifySQL = `select pg_notify('outbox', '')`

// follow waits for d. What this process commits meanwhile it tells the relay that leads, the first commit after a pause
// at once. Polling finds what a lost notification does not tell.
func (r *Relay) follow(ctx context.Context, s *session, d time.Duration) error {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	var wake <-chan struct{}
	if r.cfg.Listen {
		wake = r.cfg.Wake
	}
	for {
		select {
		case <-wake:
		case <-waiting.Done():
			return ctx.Err()
		}
		err := s.do(ctx, func(ctx context.Context) error {
			_, err := s.conn.Exec(ctx, notifySQL)
			return err
		})
		switch {
		case err != nil && s.conn.IsClosed():
			return fmt.Errorf("notify the leader: %w", err)
		case err != nil: // a full queue of notifications, say, is no reason to follow no longer
			r.cfg.Log.Warn("notify the leader", "error", err)
		}
		_ = failure.Sleep(waiting, notifyEvery)
	}
}

// Healthy is for a readiness check. It fails if the relay does not run, until it has led or seen that another one
// does, while it publishes nothing because an operator has to act (see [Config.Topics] and [Relay.Restored]), or if
// for [Config.MaxSilence] nothing has moved although there was something to publish, rows of keys that were set aside
// included, or it was not even known whether there was: the broker is down, the publisher hangs, the database cannot
// be reached, no relay leads. It needs no connection of its own.
func (r *Relay) Healthy(context.Context) error {
	h := &r.health
	h.mu.Lock()
	defer h.mu.Unlock()
	silence := time.Since(h.wellAt)
	switch {
	case h.state == stateStopped:
		return errors.New("outbox relay does not run")
	case h.refused != nil:
		return fmt.Errorf("outbox relay publishes nothing: %w", h.refused)
	case silence <= r.cfg.MaxSilence && h.state == stateStarting:
		return errors.New("outbox relay has neither led nor seen a leader yet")
	case silence <= r.cfg.MaxSilence:
		return nil
	case h.err != nil:
		return fmt.Errorf("outbox relay: nothing moved for %s, was %s: %w", silence.Round(time.Second), h.state, h.err)
	}
	return fmt.Errorf("outbox relay: nothing moved for %s, was %s", silence.Round(time.Second), h.state)
}

// Restored is not nil while the relay of this process knows of a restore that is not confirmed.
func (r *Relay) Restored() error {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	if refused := r.health.refused; refused != nil && refused.Has(restore.CodeRestored) {
		return refused
	}
	return nil
}

// states of a relay; in the last two all is well.
const (
	stateStopped   = ""
	stateStarting  = "starting" // it has neither led nor seen a leader
	stateLeading   = "leading"
	stateFollowing = "following a leader"
)

// health keeps when it was last known that everything moves. That is so when the leader found
// nothing to publish or got something taken, and when a follower saw a lease that has not run out.
type health struct {
	mu      sync.Mutex
	state   string
	wellAt  time.Time
	err     error              // since then
	refused *outbox.CheckError // why nothing is published until an operator acts
}

func (h *health) set(change func(*health)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *health) markWell(state string) {
	h.set(func(h *health) { h.wellAt, h.state, h.err, h.refused = time.Now(), state, nil, nil })
}

func (h *health) markFailed(err error) { h.set(func(h *health) { h.err = err }) }
