package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// leader is one term of leadership, on one session and in one goroutine.
type leader struct {
	*Relay
	cursor

	parked  map[key]int // the attempts of each parked key; only the leader parks and releases
	flushAt time.Time

	callLimit int // records of a call; fewer while the publisher is slow

	takenAt  time.Time // the publisher took a record
	failedAt time.Time
	parkedAt time.Time // keys were parked after it took none

	storedAt   time.Time
	beganAt    time.Time
	maintainAt time.Time
	dueAt      time.Time // zero: none is scheduled
	notAddedAt time.Time // a due event could not be added
}

func (r *Relay) lead(ctx context.Context, conn *pgx.Conn) (*leader, error) {
	l := &leader{
		Relay: r, callLimit: r.cfg.BatchSize, cursor: cursor{conn: conn, limit: r.cfg.BatchSize, maxLimit: r.cfg.BatchSize},
	}
	if err := l.cursor.lead(ctx, r.cfg.Name); err != nil {
		return nil, err
	}
	for _, begin := range []func(context.Context) error{l.listen, l.loadParked, l.loadEnds} {
		if err := begin(ctx); err != nil {
			return nil, err
		}
	}
	r.health.set(stateLeading, time.Time{})
	r.metrics.leader.Set(1)
	r.metrics.epoch.Set(float64(l.epoch))
	r.cfg.Log.Info("relay leads", "epoch", l.epoch, "leader", r.cfg.Name)
	return l, nil
}

type outcome int

const (
	resting outcome = iota
	published
	draining // more events are known to wait
)

func (l *leader) run(ctx context.Context) error {
	pause, woken := l.cfg.pollMin, false
	for ctx.Err() == nil {
		result, err := l.round(ctx)
		if err == nil && result == resting && time.Since(l.storedAt) >= closeAfter {
			err = l.finish(ctx)
		}
		if err != nil {
			return err
		}
		if result == draining {
			continue
		}
		if woken && result == published {
			select {
			case <-l.cfg.Wake: // the commits of a pause share the statements of the next round
				_ = failure.Sleep(ctx, l.cfg.roundEvery-time.Since(l.beganAt))
				continue
			default:
			}
		}
		if result == published {
			pause = l.cfg.pollMin // other processes commit too
		}
		if woken, err = l.awaitCommit(ctx, l.conn, l.restFor(pause)); err != nil {
			return err
		}
		if !woken {
			pause = min(2*pause, l.cfg.PollMax)
		}
	}
	return cmp.Or(l.finish(ctx), ctx.Err())
}

// closeAfter is how long a published window stays open at rest: under load the next page closes it.
const closeAfter = 25 * time.Millisecond

func (l *leader) restFor(pause time.Duration) time.Duration {
	if l.open != nil && l.open.complete {
		pause = min(pause, time.Until(l.storedAt.Add(closeAfter)))
	}
	if !l.dueAt.IsZero() {
		pause = min(pause, max(time.Until(l.dueAt), time.Until(l.notAddedAt.Add(retryDue))))
	}
	return max(pause, time.Millisecond)
}

func (l *leader) round(ctx context.Context) (outcome, error) {
	l.beganAt = time.Now()
	if err := l.maintain(ctx); err != nil {
		return resting, err
	}
	l.forgetNotifications()
	n, err := l.poll(ctx)
	if err != nil {
		return resting, err
	}
	if n.paused {
		l.health.well()
		l.dueAt = time.Time{} // nothing is added before it resumes
		return resting, l.finish(ctx)
	}
	if err := l.addDue(ctx, n.nextDue); err != nil {
		return resting, err
	}
	ready, err := l.watchLog(ctx)
	if !ready || err != nil {
		return resting, err
	}
	flushed, err := l.flushParked(ctx)
	result := resting
	if err == nil {
		result, err = l.publishNext(ctx, n)
	}
	if errors.Is(err, errRefused) {
		return resting, l.loadParked(ctx)
	}
	isStuck := len(l.parked) > 0 && l.failedAt.After(l.takenAt) // the publisher has taken no record since its last failure
	if err == nil && result == resting && !isStuck {
		l.health.well()
	}
	return max(result, flushed), err
}

func (l *leader) publishNext(ctx context.Context, n now) (outcome, error) {
	w := l.next(n)
	if w == nil {
		return resting, nil
	}
	page, more, err := l.read(ctx, pageSQL, w.position, w.after.text, w.text)
	switch {
	case err != nil:
		return resting, err
	case len(page) == 0 && w == l.open:
		w.complete = true
		return draining, nil
	case len(page) == 0:
		if l.open == nil {
			l.done = w.snapshot // only memory records the end of transactions without events
		}
		return resting, nil
	}
	settled, changed, err := l.readyOrPark(ctx, page)
	if err != nil {
		return resting, err
	}
	if changed {
		return draining, l.loadParked(ctx) // keys that readyOrPark has parked are not stored
	}
	paused, err := l.storeSettled(ctx, w, page, settled)
	if paused || err != nil {
		return resting, err
	}
	settled, err = l.publish(ctx, page)
	if err != nil {
		return resting, err
	}
	w.position, w.complete = page[len(page)-1].Position, !more
	if len(settled.held) > 0 {
		if _, err := l.storeSettled(ctx, w, nil, settled); err != nil {
			return resting, err
		}
	}
	if more {
		return draining, nil
	}
	return published, nil
}

// finish closes the window if it is published, or records how far it is.
func (l *leader) finish(ctx context.Context) error {
	w := l.open
	switch {
	case w == nil:
		return nil
	case w.complete:
		w = nil
	case w.position == l.stored:
		return nil
	}
	_, err := l.storeSettled(ctx, w, nil, settlement{})
	return err
}

// storeSettled stores the window and the page, as storePage does, with the parked keys and the held rows.
func (l *leader) storeSettled(ctx context.Context, w *window, page []record, s settlement) (paused bool, err error) {
	closes := l.open != nil && w != l.open
	var also *pgx.Batch
	if len(s.parked)+len(s.held) > 0 {
		also = s.batch()
	}
	paused, err = l.storePage(ctx, w, page, also)
	l.storedAt = time.Now()
	if err != nil {
		return false, err
	}
	if also != nil {
		s.log(ctx, l.cfg.Log)
	}
	if closes {
		err = l.storePoint(ctx)
	}
	return paused, err
}

const loadParkedSQL = `select topic, key, attempts from public.outbox_parked`

func (l *leader) loadParked(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	l.parked = map[key]int{}
	rows, _ := l.conn.Query(ctx, loadParkedSQL)
	var k key
	var attempts int
	_, err := pgx.ForEachRow(rows, []any{&k.Topic, &k.Key, &attempts}, func() error {
		l.parked[k] = max(attempts, 1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("load parked keys: %w", err)
	}
	return nil
}
