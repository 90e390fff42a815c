package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/window"
)

// leader is one term of leadership on one session. One goroutine runs it; only the calls of Publish and the reading
// ahead have their own.
type leader struct {
	shared
	recorder   *recorder
	pace       roundPace
	parked     *parkedKeys
	patience   patience
	partitions *tablePartitions
	topics     *topicCheck
	scheduled  *scheduledEvents
	resumed    map[receipt]bool // taken in an earlier session of this process
}

// shared is what all parts of a leader work with.
type shared struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	health  *health
	sender  *sender
	session *session
	window  *window.Reader
}

// due is when a chore is to be done next; its zero value: at once.
type due struct{ at time.Time }

func (d *due) isDue() bool { return !time.Now().Before(d.at) }

// lead publishes until something fails or ctx ends. All statements run detached from ctx: a stop waits for the few
// milliseconds that a page takes, and then nothing has to be sent twice.
func (r *Relay) lead(ctx context.Context, s *session) error {
	l, err := r.newLeader(ctx, s)
	if err != nil {
		return err
	}
	for _, check := range []func(context.Context) error{l.rebase, l.checkRestore} {
		if err := l.awaitSuccess(ctx, check); err != nil {
			return err
		}
	}
	return l.run(ctx)
}

func (r *Relay) newLeader(ctx context.Context, s *session) (*leader, error) {
	l := &leader{
		shared: shared{
			cfg: r.cfg, log: r.log, metrics: r.metrics, health: &r.health, sender: &r.sender, session: s,
		},
		resumed:  r.sender.unrecorded.asSet(),
		pace:     roundPace{every: r.cfg.RoundEvery, sleep: failure.Sleep},
		patience: patience{attempts: r.cfg.Attempts, limit: r.cfg.Patience},
	}
	err := s.do(ctx, func(ctx context.Context) (err error) {
		if l.window, err = window.NewReader(ctx, s.conn, s.term, r.pages); err != nil {
			return err
		}
		l.parked, err = loadParked(ctx, s.conn, r.cfg)
		return err
	})
	l.recorder = &recorder{shared: l.shared}
	l.partitions = &tablePartitions{shared: l.shared}
	l.topics = &topicCheck{shared: l.shared}
	l.scheduled = &scheduledEvents{shared: l.shared}
	return l, err
}

// rebase is for a database that comes from another cluster. It fails while there are writers.
func (l *leader) rebase(ctx context.Context) error {
	from, to := l.window.Clusters()
	if from == to {
		return nil
	}
	if err := l.session.do(ctx, l.window.Rebase); err != nil {
		return err
	}
	l.log.Warn("outbox was restored into another cluster", "from", from, "to", to)
	return nil
}

// awaitSuccess returns when a check finds nothing wrong. Until then the relay leads and publishes nothing: it keeps its
// lease and the room for writers, and checks again every [Config.ConfirmEvery]. If an operator has to act, which a
// [*outbox.CheckError] says, it fails its health check at once.
func (l *leader) awaitSuccess(ctx context.Context, check func(context.Context) error) error {
	for failed := false; ; failed = true {
		err := check(ctx)
		switch {
		case l.session.conn.IsClosed(), errors.Is(err, window.ErrDeposed), errors.Is(err, window.ErrDiverged):
			return err
		case err == nil && !failed:
			return nil
		case err == nil:
			l.log.Info("relay publishes again")
			l.health.markWell(stateLeading)
			return nil
		}
		if refused, is := errors.AsType[*outbox.CheckError](err); is {
			l.health.markRefused(refused)
		} else {
			l.health.markFailed(err)
		}
		l.log.Error("relay publishes nothing", "error", err)
		if err := failure.Sleep(ctx, l.cfg.ConfirmEvery); err != nil {
			return err
		}
		if err := l.keepUp(ctx); err != nil {
			return err
		}
	}
}

// run is the relay at work: what is due, a window, a pause.
func (l *leader) run(ctx context.Context) error {
	why, pause := byTime, l.cfg.PollMin
	for ctx.Err() == nil {
		more, err := l.prepareRound(ctx)
		if err != nil {
			return err
		}
		l.pace.began = time.Now()
		found, err := l.publishNext(ctx)
		if err != nil {
			return err
		}
		if found || more || why != byTime {
			l.scheduled.committed(why)
		}
		if found && why != byCommit || more {
			pause = l.cfg.PollMin // others commit, too, and may not say so
		}
		if more {
			continue
		}
		if found && l.pace.goesOn(ctx, l.cfg.Wake) {
			why = l.session.heard()
			continue
		}
		if !l.stuck() {
			l.health.markWell(stateLeading)
		}
		why, err = l.session.awaitCommit(ctx, l.cfg.Wake, min(pause, l.scheduled.wait(), l.recorder.waitToClose()))
		if err != nil {
			return err
		}
		if why == byTime {
			pause = min(2*pause, l.cfg.PollMax)
		}
	}
	if err := l.recorder.close(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// prepareRound does what is due between two windows. What is through is recorded before an operator may have to be
// waited for. It reports whether more held rows may go out at once.
func (l *leader) prepareRound(ctx context.Context) (more bool, err error) {
	if l.cfg.Topics != nil && l.topics.isDue() {
		if err := l.recorder.close(ctx); err != nil {
			return false, err
		}
		if err := l.awaitSuccess(ctx, l.topics.check); err != nil {
			return false, err
		}
	}
	return l.doChores(ctx, l.recorder.close)
}

// doChores does what is due between two windows and between two pages: a window can be long, and the lease, the table
// partitions, and the parked keys and scheduled events that are due do not wait for its end. What was taken is
// recorded, and held rows are written down, before any of them may be sent.
func (l *leader) doChores(ctx context.Context, record func(context.Context) error) (more bool, err error) {
	if err := l.keepUp(ctx); err != nil {
		return false, err
	}
	if len(l.parked.attempts) > 0 && l.parked.isDue() {
		if err := record(ctx); err != nil {
			return false, err
		}
		if more, err = l.flushParked(ctx); err != nil {
			return false, err
		}
	}
	if l.cfg.Scheduled != nil && l.scheduled.isDue() {
		err = l.scheduled.add(ctx)
	}
	return more, err
}

// keepUp does what cannot wait, also while a broker is down: it extends the lease and maintains the table partitions.
func (l *leader) keepUp(ctx context.Context) error {
	renew, maintain := l.session.term.Remaining() < l.cfg.Lease*2/3, l.partitions.isDue()
	if renew {
		if err := l.session.renew(ctx); err != nil {
			return err
		}
	}
	if !maintain {
		return nil
	}
	err := l.partitions.maintain(ctx)
	if err == nil || errors.Is(err, window.ErrDeposed) || l.session.conn.IsClosed() {
		return err
	}
	// There is room ahead for a while. A lock may be held or a right taken away: publishing goes on.
	l.metrics.neglected.Inc()
	l.log.Error("partitions not maintained", "error", err)
	return nil
}

// roundPace keeps rounds apart while commits keep coming: what is committed meanwhile shares the next one's statements.
// The first event after a rest is published at once, and so is what was committed during its round.
type roundPace struct {
	every time.Duration                              // [Config.RoundEvery]
	sleep func(context.Context, time.Duration) error // until then
	began time.Time
	// steady says that there was something to publish as soon as the last round was through.
	steady bool
}

// goesOn says, when a round is through, that there is something to publish, and it is time. A commit that is told of
// here is found by the round that follows.
func (p *roundPace) goesOn(ctx context.Context, wake <-chan struct{}) bool {
	if left := p.every - time.Since(p.began); p.steady && left > 0 {
		_ = p.sleep(ctx, left)
	}
	select {
	case <-wake:
		p.steady = true
	default:
		p.steady = false
	}
	return p.steady
}
