package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// window publishes one window. It reports false if there is nothing new.
func (l *leader) window(ctx context.Context) (found bool, err error) {
	var (
		w *window
		p page
	)
	err = l.onConn(ctx, func(ctx context.Context) error {
		if w, err = l.reader.poll(ctx); w == nil || err != nil {
			return err
		}
		if p, err = l.reader.page(ctx, w, w.pos); err != nil {
			return err
		}
		if len(p.records) == 0 && l.reader.win != w {
			l.reader.skip(w)
			w = nil
			return nil
		}
		return l.reader.store(ctx, w)
	})
	if err != nil {
		return false, err
	}
	if w == nil {
		return false, nil
	}
	l.recorded = time.Now()
	return true, l.publish(ctx, windowSource{l.reader, w}, p)
}

func (l *leader) publishLeftover(ctx context.Context) error {
	src := leftoverSource{l.reader}
	var p page
	err := l.onConn(ctx, func(ctx context.Context) (err error) {
		p, err = src.read(ctx, l.reader.old.pos)
		return err
	})
	if err != nil {
		return err
	}
	return l.publish(ctx, src, p)
}

// publish sends a source page by page. While a page is in the air, those behind it are read, and what was taken before
// it is recorded if that is due. Nothing is recorded before it was taken.
func (l *leader) publish(ctx context.Context, src source, p page) error {
	ahead := l.readAhead(ctx, src, p)
	defer ahead.stop()
	var taken outcome // not yet recorded
	for len(p.records) > 0 {
		if err := l.between(ctx, src, &taken); err != nil {
			return err
		}
		f, out := l.launch(ctx, p.records)
		if l.recordingDue(taken, len(p.records)) {
			if err := l.advance(ctx, src, &taken); err != nil {
				l.collect(f) // what has landed by now need not be sent again
				return err
			}
		}
		if err := l.settle(ctx, f, &out); err != nil {
			return err
		}
		if !l.stuck() { // also behind a page of which nothing was to be sent
			l.health.well(stateLeading)
		}
		taken.add(out)
		if ctx.Err() != nil && p.more { // a stop in the middle of a large window
			return l.advance(ctx, src, &taken)
		}
		var err error
		if p, err = ahead.next(); err != nil {
			return err
		}
	}
	return l.record(ctx, src.finish, taken)
}

// between is what has to be done between two pages: a window can be long, and the lease, the partitions and the parked
// keys that are due do not wait for its end. Held rows are written down before any of them may be sent.
func (l *leader) between(ctx context.Context, src source, taken *outcome) error {
	if err := l.tend(ctx); err != nil {
		return err
	}
	if l.flushDue() {
		if taken.events > 0 {
			if err := l.advance(ctx, src, taken); err != nil {
				return err
			}
		}
		if _, err := l.flush(ctx); err != nil {
			return err
		}
	}
	return l.secure(ctx)
}

// recordingDue decides whether what was taken is to be recorded while so many more are in the air. A commit per page
// would cost more than reading it. What waits is what a crash sends again, so there is a limit to it, in time and in
// events. What was set aside is written down at once, and so is what an earlier session has taken: if sessions keep
// breaking, each must get further than the last.
func (l *leader) recordingDue(taken outcome, inTheAir int) bool {
	switch {
	case taken.events == 0:
		return false
	case taken.resumed || len(taken.parked)+len(taken.held) > 0:
		return true
	case taken.events+inTheAir+l.cfg.BatchSize > l.cfg.MaxUnrecorded:
		return true // the next page could exceed it
	}
	return time.Since(l.recorded) >= l.cfg.RecordEvery
}

// advance records what was taken, and that nothing is left to be recorded.
func (l *leader) advance(ctx context.Context, src source, taken *outcome) error {
	err := l.record(ctx, func(ctx context.Context, also func(pgx.Tx) error) error {
		return src.advance(ctx, taken.pos, also)
	}, *taken)
	*taken = outcome{}
	return err
}

// secure makes sure that the lease outlasts the flight to come, and that the session has not ended meanwhile: a
// follower may have taken over, since the leader's lock ends with the session.
func (l *leader) secure(ctx context.Context) error {
	if l.term.left() >= l.deadline() {
		if answered := l.answered.Load(); answered != nil && time.Since(*answered) < proveAfter {
			return nil
		}
		return l.onConn(ctx, func(ctx context.Context) error { return l.term.prove(ctx, l.conn) })
	}
	err := l.onConn(ctx, func(ctx context.Context) error { return l.term.renew(ctx, l.conn) })
	if err == nil && l.term.left() < l.deadline() {
		err = fmt.Errorf("renew lease: took too long, %s of %s left", l.term.left(), l.cfg.Lease)
	}
	return err
}

// deadline is when a flight counts as lost: after the publisher's own time, before the lease is over.
func (r *Relay) deadline() time.Duration {
	return r.cfg.PublishTimeout + (r.cfg.Lease-r.cfg.PublishTimeout)/2
}

// launch sends the page's records, apart from those of parked keys and those that were taken in an earlier session.
func (l *leader) launch(ctx context.Context, records []record) (*flight, outcome) {
	out := outcome{pos: records[len(records)-1].position, events: len(records)}
	if len(l.parked) == 0 && len(l.resumed) == 0 {
		return l.sender.launch(ctx, records), out
	}
	due := make([]record, 0, len(records))
	for _, r := range records {
		switch {
		case l.parked.has(r.name()):
			out.held = append(out.held, r)
		case l.resumed[r.receipt()]:
			out.resumed = true
		default:
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		return nil, out
	}
	return l.sender.launch(ctx, due), out
}
