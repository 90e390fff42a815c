package relay

import (
	"context"

	"example.com/twinbox/engine/outbox/window"
)

// publishNext publishes one window, or what a restore left. It reports false if there is nothing new.
func (l *leader) publishNext(ctx context.Context) (found bool, err error) {
	first, found, err := l.recorder.next(ctx)
	if err != nil || !found {
		return false, err
	}
	return true, l.publish(ctx, first)
}

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
		if l.recorder.isDue(taken, len(p.Records)) {
			if err := l.recorder.advance(ctx, &taken); err != nil {
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
			return l.recorder.advance(ctx, &taken)
		}
		var err error
		if p, err = ahead.next(); err != nil {
			return err
		}
	}
	return l.recorder.finish(ctx, taken)
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
			if err := l.recorder.advance(ctx, taken); err != nil {
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
