package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/restore"
	"example.com/twinbox/engine/outbox/window"
)

// Relay publishes the outbox's events. Any number may run against one database; one of them leads.
//
// Guaranteed: every committed event reaches the publisher at least once and is acknowledged by it before the cursor
// passes it; per key and topic, first occurrences are in the order of versions, through failures, restarts and hangs.
// Not guaranteed: that an event is sent once, nor any order across keys.
type Relay struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	health  health
	pages   *window.Pager
	sender  sender
	last    *window.Term // nil: never led
	ready   bool         // a session passed all checks once: what is wrong later may pass
}

// New returns a [*outbox.CheckError] that lists everything wrong with the configuration. It connects to nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Relay{
		cfg:     cfg,
		log:     cfg.Log,
		metrics: newMetrics(),
		pages:   window.NewPager(cfg.BatchSize, batchBytes),
	}
	r.sender = sender{
		publisher: cfg.Publisher, timeout: cfg.PublishTimeout, deadline: cfg.sendingDeadline(), metrics: r.metrics,
		spans: cfg.Spans, // part: observability
	}
	r.health.limit = cfg.MaxSilence
	if cfg.Registerer != nil {
		if err := r.metrics.register(cfg.Registerer); err != nil {
			return nil, fmt.Errorf("register relay metrics: %w", err)
		}
	}
	return r, nil
}

// Run relays until ctx ends, then lets a call of Publish that is under way end, records what it achieved, gives the
// lease back, if it still has its session, and returns nil. It returns earlier only with a [*outbox.CheckError], before
// it has led for the first time: a server or a schema on which events would be lost. Everything else is tried again,
// for ever.
func (r *Relay) Run(ctx context.Context) error {
	r.health.begin()
	defer r.health.end()
	err := r.runSessions(ctx)
	if late := r.sender.last.waitFor(context.WithoutCancel(ctx), r.cfg.PublishTimeout); late != nil {
		return errors.Join(err, fmt.Errorf("stop relay: %w", late))
	}
	return err
}

// retryMax is the longest pause between two sessions. A session that has lasted for longer was a good one.
const retryMax = 5 * time.Second

// runSessions runs one session after the other. Its error is nil if ctx ended.
func (r *Relay) runSessions(ctx context.Context) error {
	for pauses := (failure.Backoff{Min: 50 * time.Millisecond, Max: retryMax}); ; {
		began := time.Now()
		err := r.runSession(ctx)
		r.metrics.leader.Set(0)
		if ctx.Err() != nil {
			return nil
		}
		var refused *outbox.CheckError
		if errors.As(err, &refused) && !r.ready {
			return err
		}
		r.health.markFailed(err)
		r.metrics.sessions.Inc()
		r.log.Warn("relay session ended", "error", err)
		if time.Since(began) > retryMax {
			pauses.Reset()
		}
		if failure.Sleep(ctx, pauses.Next()) != nil {
			return nil
		}
	}
}

// runSession is one connection's life: follow, lead, end. Its error is never nil unless ctx ended.
func (r *Relay) runSession(ctx context.Context) error {
	if err := r.sender.last.waitFor(ctx, math.MaxInt64); err != nil { // the last session's, hanging in the publisher
		return err
	}
	r.sender.collect(r.sender.last)
	conn, err := connect(ctx, r.cfg.Connect)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	r.ready = true
	t, err := r.awaitTerm(ctx, conn)
	if err != nil {
		return err
	}
	r.last = t
	r.health.markLeading()
	s := &session{conn: conn, term: t, need: r.cfg.sendingDeadline()}
	if r.cfg.Listen {
		err := s.do(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, listenSQL)
			return err
		})
		if err != nil {
			return fmt.Errorf("listen for notifications: %w", err)
		}
	}
	r.log.Info("relay leads", "epoch", t.Epoch, "leader", r.cfg.Name)
	r.metrics.leader.Set(1)
	r.metrics.epoch.Set(float64(t.Epoch))
	err = r.lead(ctx, s)
	if ctx.Err() != nil && !conn.IsClosed() && r.sender.last.waitFor(ctx, 0) == nil {
		err = errors.Join(err, withTimeout(ctx, func(ctx context.Context) error { return release(ctx, conn, t) }))
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
func (r *Relay) awaitTerm(ctx context.Context, conn *pgx.Conn) (*window.Term, error) {
	for before := (leadership{epoch: neverLed}); ; {
		var t *window.Term
		var seen leadership
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			if seen, err = readLeadership(ctx, conn); err == nil && r.mayLead(before, seen) {
				t, err = acquire(ctx, conn, r.cfg.Name, r.cfg.Lease, seen)
			}
			return err
		})
		if err != nil || t != nil {
			return t, err
		}
		if seen.remaining > 0 {
			r.health.markWell(stateFollowing)
		}
		fault.Here("relay.follow")
		pause := min(followEvery, r.cfg.PollMax)
		if seen.ended {
			pause = returnGrace
		}
		if err := r.follow(ctx, conn, max(min(seen.remaining, pause), time.Millisecond)); err != nil {
			return nil, err
		}
		before = seen
	}
}

// mayLead decides after two readings. This relay may lead if none does; if it was itself the last, since none has led
// while the epoch is the one it had; and if the leader's session had ended already at the reading before.
func (r *Relay) mayLead(before, seen leadership) bool {
	return seen.remaining <= 0 || r.last != nil && r.last.Epoch == seen.epoch ||
		seen.ended && before.ended && before.epoch == seen.epoch
}

const (
	notifySQL = `select pg_notify('outbox', '')`
	// notifyEvery is the least time between two notifications. One in every writing transaction would make all commits of
	// the cluster wait for one lock.
	notifyEvery = 20 * time.Millisecond
)

// follow waits for d. What this process commits meanwhile it tells the relay that leads, the first commit after a pause
// at once. Polling finds what a lost notification does not tell.
func (r *Relay) follow(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
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
		err := withTimeout(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, notifySQL)
			return err
		})
		switch {
		case err != nil && conn.IsClosed():
			return fmt.Errorf("notify the leader: %w", err)
		case err != nil: // a full queue of notifications, say, is no reason to follow no longer
			r.log.Warn("notify the leader", "error", err)
		}
		_ = failure.Sleep(waiting, notifyEvery)
	}
}

// Healthy is for a readiness check. It fails if the relay does not run, until it has led or seen that another one
// does, while it publishes nothing because an operator has to act (see [Config.Topics] and [Relay.Restored]), or if
// for [Config.MaxSilence] nothing has moved although there was something to publish, rows of keys that were set aside
// included, or it was not even known whether there was: the broker is down, the publisher hangs, the database cannot
// be reached, no relay leads. It needs no connection of its own.
func (r *Relay) Healthy(context.Context) error { return r.health.check() }

// Restored is not nil while the relay of this process knows of a restore that is not confirmed.
func (r *Relay) Restored() error {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	if refused := r.health.refused; refused != nil && refused.Has(restore.CodeRestored) {
		return refused
	}
	return nil
}

// withTimeout runs statements that are not to be cut off by a shutdown, which would cost the session and what could
// still be recorded, but by a server that does not answer.
func withTimeout(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), statementTimeout,
		fmt.Errorf("no answer from PostgreSQL in %s", statementTimeout))
	defer cancel()
	return do(ctx)
}

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
	err     error              // since then
	refused *outbox.CheckError // why nothing is published until an operator acts
}

func (h *health) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *health) begin() {
	h.set(func() { h.running, h.wellAt, h.state = true, time.Now(), stateStarting })
}

func (h *health) end() { h.set(func() { h.running = false }) }

// markLeading says that it holds the lease, whether or not anything moves yet.
func (h *health) markLeading() { h.set(func() { h.state = stateLeading }) }

func (h *health) markWell(state string) {
	h.set(func() { h.wellAt, h.state, h.err, h.refused = time.Now(), state, nil, nil })
}

func (h *health) markFailed(err error) { h.set(func() { h.err = err }) }

func (h *health) markRefused(refused *outbox.CheckError) { h.set(func() { h.refused = refused }) }

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
