package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	cfg     RelayConfig
	log     *slog.Logger
	metrics *relayMetrics
	health  health
	pages   *pager
	sender  sender
	recent  recent
	heard   chan struct{} // notifications of other processes
	epoch   int64         // of the last term, or neverLed
	ready   bool          // a session passed all checks once: what is wrong later may pass
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
		heard: make(chan struct{}, 1),
		epoch: neverLed,
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
// lease back and returns nil. It returns earlier only with a [*CheckError]: a server, a schema or topics on which
// events would be lost. Everything else is tried again, for ever.
func (r *Relay) Run(ctx context.Context) error {
	r.health.begin()
	defer r.health.end()
	defer r.listen(ctx)()
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := r.session(ctx)
		r.metrics.follow()
		if ctx.Err() != nil {
			return r.sender.drain(r.cfg.PublishTimeout)
		}
		var refused *CheckError
		if errors.As(err, &refused) && (!r.ready || refused.Has(codePartitionCount)) {
			return errors.Join(err, r.sender.drain(r.cfg.PublishTimeout))
		}
		r.health.failed(err)
		r.metrics.sessions.Inc()
		r.log.Warn("relay session ended", "error", err)
		if time.Since(began) > retryMax {
			pause = retryMin
		}
		if !sleep(ctx, jitter(pause)) {
			return r.sender.drain(r.cfg.PublishTimeout)
		}
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
	r.epoch = t.epoch
	r.log.Info("relay leads", "epoch", t.epoch, "leader", r.cfg.Name)
	r.metrics.lead(t.epoch)
	err = r.lead(ctx, conn, t)
	if ctx.Err() != nil && !conn.IsClosed() && !r.sender.busy() {
		err = errors.Join(err, withTimeout(ctx, func(ctx context.Context) error { return t.release(ctx, conn) }))
	}
	return err
}

// awaitTerm follows until nobody leads. A follower looks at the lease often enough to take over within a poll of its
// end.
func (r *Relay) awaitTerm(ctx context.Context, conn *pgx.Conn) (*term, error) {
	for {
		var t *term
		var left time.Duration
		err := withTimeout(ctx, func(ctx context.Context) (err error) {
			if t, err = acquire(ctx, conn, r.cfg.Name, r.cfg.Lease, r.epoch); err != nil || t != nil {
				return err
			}
			left, err = leaseLeft(ctx, conn)
			return err
		})
		if err != nil || t != nil {
			return t, err
		}
		if left > 0 {
			r.health.well(stateFollowing)
		}
		fault.Here("relay.follow")
		if err := r.forward(ctx, conn, max(min(left, r.cfg.PollMax), time.Millisecond)); err != nil {
			return nil, err
		}
	}
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
