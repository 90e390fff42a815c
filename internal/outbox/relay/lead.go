package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/window"
)

// leader is one term of leadership on one session. One goroutine runs it; only the calls of Publish and the reading
// ahead have their own.
type leader struct {
	*Relay
	*session
	window  *window.Reader
	pace    roundPace
	resumed map[receipt]bool // taken in an earlier session of this process

	taken      outcome   // of the window that is open: taken and not recorded
	through    bool      // nothing of that window is left to be sent
	recordedAt time.Time // the cursor was moved, or a window opened

	// parked is the leader's copy of public.outbox_parked, with the attempts so far: it is asked about each record. Only
	// the leader adds to that table and deletes from it.
	parked  map[window.Key]int
	flushAt time.Time // held rows may be sent again

	takenAt  time.Time // a record was taken
	failedAt time.Time // a call failed, and not for good, of which no record was taken
	parkedAt time.Time // keys were set aside because a broker did not take them

	partitions *tablePartitions
	scheduled  *scheduledEvents
	topicsAt   time.Time        // the broker is to be asked for its topics
	topics     map[string]int32 // its last answer
}

// listenSQL has the session told of other processes' commits.
const listenSQL = `listen outbox`

const loadParkedSQL = `select topic, key, attempts from public.outbox_parked`

func (r *Relay) newLeader(ctx context.Context, s *session) (*leader, error) {
	l := &leader{
		Relay: r, session: s, parked: map[window.Key]int{}, resumed: map[receipt]bool{},
		pace: roundPace{every: r.cfg.RoundEvery, sleep: failure.Sleep},
	}
	l.partitions, l.scheduled = &tablePartitions{leader: l}, &scheduledEvents{leader: l}
	for _, x := range r.unrecorded {
		l.resumed[x] = true
	}
	return l, s.do(ctx, func(ctx context.Context) (err error) {
		if r.cfg.Listen {
			if _, err = s.conn.Exec(ctx, listenSQL); err != nil {
				return fmt.Errorf("listen for notifications: %w", err)
			}
		}
		if l.window, err = window.NewReader(ctx, s.conn, s.term, r.pages); err != nil {
			return err
		}
		rows, _ := s.conn.Query(ctx, loadParkedSQL)
		var key window.Key
		var attempts int
		_, err = pgx.ForEachRow(rows, []any{&key.Topic, &key.Key, &attempts}, func() error {
			l.parked[key] = max(attempts, 1)
			return nil
		})
		if err != nil {
			return fmt.Errorf("load parked keys: %w", err)
		}
		return nil
	})
}

// awaitSuccess returns when a check finds nothing wrong. Until then the relay leads and publishes nothing: it keeps its
// lease and the room for writers, and checks again every [Config.ConfirmEvery]. If an operator has to act, which a
// [*outbox.CheckError] says, it fails its health check at once. What is through is recorded before.
func (l *leader) awaitSuccess(ctx context.Context, check func(context.Context) error) error {
	if err := l.record(ctx); err != nil {
		return err
	}
	for failed := false; ; failed = true {
		err := check(ctx)
		if err == nil && failed {
			l.cfg.Log.Info("relay publishes again")
			l.health.markWell(stateLeading)
		}
		if err == nil || l.conn.IsClosed() || errors.Is(err, window.ErrDeposed) || errors.Is(err, window.ErrDiverged) {
			return err
		}
		refused, _ := errors.AsType[*outbox.CheckError](err)
		l.health.set(func(h *health) { h.err, h.refused = err, cmp.Or(refused, h.refused) })
		l.cfg.Log.Error("relay publishes nothing", "error", err)
		if err := failure.Sleep(ctx, l.cfg.ConfirmEvery); err != nil {
			return err
		}
		if err := l.keepUp(ctx); err != nil {
			return err
		}
	}
}

// run is the relay at work: what is due, a window, a pause, until something fails or ctx ends. All statements run
// detached from ctx: a stop waits for the few milliseconds that a page takes, and then nothing has to be sent twice.
func (l *leader) run(ctx context.Context) error {
	if err := l.awaitSuccess(ctx, l.checkDatabase); err != nil {
		return err
	}
	why, pause := byTime, l.cfg.PollMin
	for ctx.Err() == nil {
		if l.cfg.Topics != nil && time.Until(l.topicsAt) <= 0 {
			if err := l.awaitSuccess(ctx, l.checkTopics); err != nil {
				return err
			}
		}
		more, err := l.doChores(ctx)
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
			why = l.heard()
			continue
		}
		l.markWellUnlessStuck()
		rest := pause
		if l.cfg.Scheduled != nil {
			rest = min(rest, max(time.Until(l.scheduled.at), time.Millisecond))
		}
		if l.through {
			rest = min(rest, max(time.Until(l.recordedAt.Add(closeAfter)), time.Millisecond))
		}
		if why, err = l.awaitCommit(ctx, l.cfg.Wake, rest); err != nil {
			return err
		}
		if why == byTime {
			pause = min(2*pause, l.cfg.PollMax)
		}
	}
	return cmp.Or(l.record(ctx), ctx.Err())
}

// doChores does what is due between two windows and between two pages: a window can be long, and the lease, the table
// partitions, and the parked keys and scheduled events that are due do not wait for its end. It reports whether more
// held rows may go out at once.
func (l *leader) doChores(ctx context.Context) (more bool, err error) {
	if err := l.keepUp(ctx); err != nil {
		return false, err
	}
	if len(l.parked) > 0 && time.Until(l.flushAt) <= 0 {
		if more, err = l.flushParked(ctx); err != nil {
			return false, err
		}
	}
	if l.cfg.Scheduled != nil && time.Until(l.scheduled.at) <= 0 {
		err = l.scheduled.add(ctx)
	}
	return more, err
}

// keepUp does what cannot wait, also while a broker is down: it extends the lease and maintains the table partitions.
func (l *leader) keepUp(ctx context.Context) error {
	if l.term.Remaining() < l.cfg.Lease*2/3 {
		if err := l.renew(ctx); err != nil {
			return err
		}
	}
	if time.Until(l.partitions.at) > 0 {
		return nil
	}
	err := l.do(ctx, l.partitions.maintain)
	if err == nil || errors.Is(err, window.ErrDeposed) || l.conn.IsClosed() {
		return err
	}
	// There is room ahead for a while. A lock may be held or a right taken away: publishing goes on.
	l.metrics.neglected.Inc()
	l.cfg.Log.Error("partitions not maintained", "error", err)
	return nil
}

// markWellUnlessStuck is for when nothing failed. The relay is stuck if something waits and the last that was heard of
// the broker is that it takes nothing. That no window is open then does not mean that all is well: keys that were set
// aside leave none open.
func (l *leader) markWellUnlessStuck() {
	if len(l.parked) == 0 || !l.failedAt.After(l.takenAt) {
		l.health.markWell(stateLeading)
	}
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
