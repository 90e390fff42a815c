package relay

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox/window"
)

// publishNext publishes one window, or what a restore left. It reports false if there is nothing new. A window that is
// through is closed by the change that opens the next one, or when none comes for a while.
func (l *leader) publishNext(ctx context.Context) (found bool, err error) {
	next := l.window.Next
	if l.through != nil {
		next = l.window.FinishAndNext
	}
	var first window.Page
	err = l.session.do(ctx, func(ctx context.Context) (err error) {
		first, found, err = next(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	if !found {
		if time.Since(l.recordedAt) < closeAfter {
			return false, nil
		}
		return false, l.close(ctx)
	}
	if l.through != nil {
		l.forget(*l.through)
		l.through = nil
	}
	l.recordedAt = time.Now()
	return true, l.publish(ctx, first)
}

// closeAfter is how long a window that is through stays open at rest: with 100 commits a second the next one comes
// sooner, and one change of the cursor serves both.
const closeAfter = 25 * time.Millisecond

// publish sends what is open page by page. While a page is in the air, those behind it are read, and what was taken
// before it is recorded if that is due. Nothing is recorded before it was taken.
func (l *leader) publish(ctx context.Context, p window.Page) error {
	ahead := readAhead(ctx, p, l.readPage)
	defer ahead.stop()
	var taken outcome // not yet recorded
	for len(p.Records) > 0 {
		if err := l.prepareFlight(ctx, &taken); err != nil {
			return err
		}
		f, out := l.launch(ctx, p.Records)
		if l.isRecordingDue(taken, len(p.Records)) {
			if err := l.advance(ctx, &taken); err != nil {
				l.sender.collect(f) // what has landed by now need not be sent again
				return err
			}
		}
		if err := l.settle(ctx, f, &out); err != nil {
			return err
		}
		if !l.stuck() { // also behind a page of which nothing was to be sent
			l.health.markWell(stateLeading)
		}
		taken.add(out)
		if ctx.Err() != nil && p.More { // a stop in the middle of a large window
			return l.advance(ctx, &taken)
		}
		var err error
		if p, err = ahead.next(); err != nil {
			return err
		}
	}
	return l.finish(ctx, taken)
}

// waitToClose is how long the window that is through, if any, may stay open yet.
func (l *leader) waitToClose() time.Duration {
	if l.through == nil {
		return math.MaxInt64
	}
	return max(closeAfter-time.Since(l.recordedAt), time.Millisecond)
}

// finish leaves open what is through. Not at a stop, nor while there is something to be written down with the end, nor
// what an earlier session has taken.
func (l *leader) finish(ctx context.Context, taken outcome) error {
	l.through = &taken
	if ctx.Err() != nil || taken.hasSetAside() || taken.resumed {
		return l.close(ctx)
	}
	return nil
}

// close records what is through, if anything.
func (l *leader) close(ctx context.Context) error {
	if l.through == nil {
		return nil
	}
	err := l.record(ctx, l.window.Finish, *l.through)
	l.through = nil
	return err
}

func (l *leader) readPage(ctx context.Context, above int64) (p window.Page, err error) {
	err = l.session.do(ctx, func(ctx context.Context) error {
		p, err = l.window.Page(ctx, above)
		return err
	})
	return p, err
}

// prepareFlight does what is due between two pages: a window can be long, and the lease, the partitions, and the parked
// keys and scheduled events that are due do not wait for its end. Held rows are written down before any of them may be
// sent.
func (l *leader) prepareFlight(ctx context.Context, taken *outcome) error {
	if err := l.keepUp(ctx); err != nil {
		return err
	}
	if l.parked.isDue() {
		if taken.events > 0 {
			if err := l.advance(ctx, taken); err != nil {
				return err
			}
		}
		if _, err := l.flushParked(ctx); err != nil {
			return err
		}
	}
	if l.scheduled.isDue() {
		if err := l.scheduled.add(ctx); err != nil {
			return err
		}
	}
	return l.session.secureLease(ctx)
}

// isRecordingDue decides whether what was taken is to be recorded while so many more are in the air. A commit per page
// would cost more than reading it. What waits is what a crash sends again, so there is a limit to it, in time and in
// events. What was set aside is written down at once, and so is what an earlier session has taken: if sessions keep
// breaking, each must get further than the last.
func (l *leader) isRecordingDue(taken outcome, inTheAir int) bool {
	switch {
	case taken.events == 0:
		return false
	case taken.resumed || taken.hasSetAside():
		return true
	case taken.events+inTheAir+l.cfg.BatchSize > l.cfg.MaxUnrecorded:
		return true // the next page could exceed it
	}
	return time.Since(l.recordedAt) >= l.cfg.RecordEvery
}

// advance records what was taken, and that nothing is left to be recorded.
func (l *leader) advance(ctx context.Context, taken *outcome) error {
	err := l.record(ctx, func(ctx context.Context, also func(pgx.Tx) error) error {
		return l.window.Advance(ctx, taken.pos, also)
	}, *taken)
	*taken = outcome{}
	return err
}

// record runs a change of the cursor together with what is to be written down, if anything, and then forgets what need
// not be remembered any more.
func (l *leader) record(
	ctx context.Context, change func(ctx context.Context, also func(pgx.Tx) error) error, out outcome,
) error {
	err := l.session.do(ctx, func(ctx context.Context) error {
		if !out.hasSetAside() {
			return change(ctx, nil)
		}
		return change(ctx, func(tx pgx.Tx) error { return writeOutcome(ctx, tx, out) })
	})
	if err != nil {
		return err
	}
	l.recordedAt = time.Now()
	l.logParked(ctx, out.parked)
	l.forget(out)
	return nil
}

// forget is for what is recorded.
func (l *leader) forget(out outcome) {
	l.sender.unrecorded.forget(func(x receipt) bool { return x.position <= out.pos })
}

// launch sends the page's records, apart from those of parked keys and those that were taken in an earlier session.
func (l *leader) launch(ctx context.Context, records []window.Record) (*flight, outcome) {
	out := outcome{pos: records[len(records)-1].Position, events: len(records)}
	if !l.parked.hasAny() && len(l.resumed) == 0 {
		return l.sender.launch(ctx, records), out
	}
	due := make([]window.Record, 0, len(records))
	for _, r := range records {
		switch {
		case l.parked.has(r.Key()):
			out.held = append(out.held, r)
		case l.resumed[receiptOf(&r)]:
			out.resumed = true
		default:
			due = append(due, r)
		}
	}
	return l.sender.launch(ctx, due), out
}

// outcome is what became of the rows of a page that is through, or of several.
type outcome struct {
	pos     int64 // the last position
	events  int
	resumed bool // some were taken in an earlier session
	parked  []parking
	held    []window.Record
}

func (o *outcome) hasSetAside() bool { return len(o.parked)+len(o.held) > 0 }

// add is for the next page.
func (o *outcome) add(next outcome) {
	o.pos, o.events, o.resumed = next.pos, o.events+next.events, o.resumed || next.resumed
	o.parked, o.held = append(o.parked, next.parked...), append(o.held, next.held...)
}
