package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// Relay publishes what the outbox holds. Any number may run against one database; one of them leads.
//
// Guaranteed: every committed event reaches the publisher at least once and is acknowledged by it before the cursor
// passes it; per key and topic, first occurrences are in the order of versions, whatever fails, restarts or hangs. Not
// guaranteed: that an event is sent once, nor any order across keys.
type Relay struct {
	cfg      RelayConfig
	log      *slog.Logger
	metrics  *relayMetrics
	health   health
	pages    *pager
	sender   sender
	recent   recent
	last     *term // nil: never led, or gave its lease back
	restored atomic.Pointer[CheckError]
	ready    bool // a session passed all checks once: what is wrong later may pass
}

// NewRelay returns a [*CheckError] that lists everything wrong with the configuration. It connects to nothing.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Relay{
		cfg:   cfg,
		log:   cfg.Log,
		pages: newPager(cfg.BatchSize, cfg.BatchBytes),
	}
	r.metrics = newRelayMetrics()
	r.sender = sender{
		publisher: cfg.Publisher, timeout: cfg.PublishTimeout, deadline: r.deadline(), metrics: r.metrics,
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
// lease back and returns nil. It returns earlier only with a [*CheckError], before it has led for the first time: a
// server or a schema on which events would be lost. Everything else is tried again, for ever.
func (r *Relay) Run(ctx context.Context) error {
	r.health.begin()
	defer r.health.end()
	err := r.sessions(ctx)
	if late := r.sender.drain(r.cfg.PublishTimeout); late != nil {
		return errors.Join(err, late)
	}
	r.giveBack(ctx)
	return err
}

// sessions is one session after the other. Its error is nil if ctx ended.
func (r *Relay) sessions(ctx context.Context) error {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := r.session(ctx)
		r.metrics.follow()
		if ctx.Err() != nil {
			return nil
		}
		var refused *CheckError
		if errors.As(err, &refused) && !r.ready {
			return err
		}
		r.health.failed(err)
		r.metrics.sessions.Inc()
		r.log.Warn("relay session ended", "error", err)
		if time.Since(began) > retryMax {
			pause = retryMin
		}
		if !sleep(ctx, jitter(pause)) {
			return nil
		}
	}
}

// giveBack ends a lease that the last session could not end: it broke before, or a call of Publish was under way.
// Followers would see its end by the free lock, a leader without the lock would keep them waiting.
func (r *Relay) giveBack(ctx context.Context) {
	if r.last == nil || r.last.left() <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	conn, err := r.cfg.Connect(ctx)
	if err == nil {
		err = r.last.release(ctx, conn)
		closeSession(ctx, conn)
	}
	if err != nil {
		r.log.Warn("lease not given back", "error", err)
	}
}

const (
	retryMin = 50 * time.Millisecond
	retryMax = 5 * time.Second
)

// session is one connection's life: follow, lead, end. Its error is never nil unless ctx ended.
func (r *Relay) session(ctx context.Context) error {
	if err := r.sender.await(ctx); err != nil { // of the last session, hanging in the publisher
		return err
	}
	r.collect(r.sender.last)
	conn, err := connect(ctx, r.cfg.Connect)
	if err != nil {
		return err
	}
	defer closeSession(ctx, conn)
	r.ready = true
	t, err := r.awaitTerm(ctx, conn)
	if err != nil {
		return err
	}
	r.last = t
	if err := r.listen(ctx, conn); err != nil {
		return err
	}
	r.log.Info("relay leads", "epoch", t.epoch, "leader", r.cfg.Name)
	r.metrics.lead(t.epoch)
	err = r.lead(ctx, conn, t)
	if ctx.Err() != nil && !conn.IsClosed() && !r.sender.busy() {
		released := withTimeout(ctx, func(ctx context.Context) error { return t.release(ctx, conn) })
		if released == nil {
			r.last = nil
		}
		err = errors.Join(err, released)
	}
	return err
}

const (
	// lookEvery is how soon a follower sees that the leader's session has ended. Each look is a statement.
	lookEvery = 650 * time.Millisecond
	// returnGrace is how long a follower leaves the lease to a leader that has lost its session and lives: it comes back
	// with a new one and need not send again what it remembers. Of a dead one it is lost time.
	returnGrace = 100 * time.Millisecond
	// proveAfter is how old a leader's last sign of its session may be when it sends. It is shorter than returnGrace, so
	// a leader that lives sends nothing more when a follower takes over after its session; a call may be under way.
	proveAfter = 60 * time.Millisecond
)

// awaitTerm follows until nobody leads. A follower looks at the lease and the leader's lock often enough to take over
// within a look of the end of either.
func (r *Relay) awaitTerm(ctx context.Context, conn *pgx.Conn) (*term, error) {
	for before := (leadership{epoch: neverLed}); ; {
		var t *term
		var seen leadership
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			if seen, err = look(ctx, conn); err == nil && r.mayLead(before, seen) {
				t, err = acquire(ctx, conn, r.cfg.Name, r.cfg.Lease, seen)
			}
			return err
		})
		if err != nil || t != nil {
			return t, err
		}
		if seen.left > 0 {
			r.health.well(stateFollowing)
		}
		fault.Here("relay.follow")
		pause := min(lookEvery, r.cfg.PollMax)
		if seen.ended {
			pause = returnGrace
		}
		if err := r.forward(ctx, conn, max(min(seen.left, pause), time.Millisecond)); err != nil {
			return nil, err
		}
		before = seen
	}
}

// mayLead decides after two looks. This relay may lead if nobody does; if it was itself the last, since nobody has led
// while the epoch is the one it had; and if the leader's session had ended already when it looked before.
func (r *Relay) mayLead(before, seen leadership) bool {
	switch {
	case seen.left <= 0:
		return true
	case r.last != nil && r.last.epoch == seen.epoch:
		return true
	}
	return seen.ended && before.ended && before.epoch == seen.epoch
}

// withTimeout runs statements that are not to be cut off by a shutdown, which would cost the session and what could
// still be recorded, but by a server that does not answer.
func withTimeout(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), statementTimeout,
		fmt.Errorf("no answer from PostgreSQL in %s", statementTimeout))
	defer cancel()
	return do(ctx)
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// jitter keeps relays from trying again in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
