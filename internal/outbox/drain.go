package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// source is what is published page by page: a window, or what a restore left.
type source interface {
	read(ctx context.Context, above int64) (page, error)
	advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error
	finish(ctx context.Context, also func(pgx.Tx) error) error
}

type windowSource struct {
	r *reader
	w *window
}

func (s windowSource) read(ctx context.Context, above int64) (page, error) {
	return s.r.page(ctx, s.w, above)
}

func (s windowSource) advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	return s.r.advance(ctx, pos, also)
}

func (s windowSource) finish(ctx context.Context, also func(pgx.Tx) error) error {
	return s.r.finish(ctx, also)
}

type leftoverSource struct{ r *reader }

func (s leftoverSource) read(ctx context.Context, above int64) (page, error) {
	return s.r.leftoverPage(ctx, above)
}

func (s leftoverSource) advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	return s.r.leftoverAdvance(ctx, pos, also)
}

func (s leftoverSource) finish(ctx context.Context, also func(pgx.Tx) error) error {
	return s.r.leftoverFinish(ctx, also)
}

// window publishes one window. It reports false if there is nothing new.
func (l *leader) window(ctx context.Context) (found bool, err error) {
	var (
		w *window
		p page
	)
	err = withTimeout(ctx, func(ctx context.Context) error {
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
		l.metrics.caughtUp()
		return false, nil
	}
	return true, l.publish(ctx, windowSource{l.reader, w}, p)
}

func (l *leader) publishLeftover(ctx context.Context) error {
	src := leftoverSource{l.reader}
	p, err := src.read(ctx, l.reader.old.pos)
	if err != nil {
		return err
	}
	return l.publish(ctx, src, p)
}

// publish sends a source page by page. While a page is in the air, the one before it is recorded and the one behind it
// is read; a page is recorded after it was taken, never before.
func (l *leader) publish(ctx context.Context, src source, p page) error {
	var before outcome // taken, not yet recorded
	for len(p.records) > 0 {
		l.metrics.pending(l.reader.sequenceHead, p.records[0])
		if err := l.between(ctx, src, &before); err != nil {
			return err
		}
		f, out := l.launch(ctx, p.records)
		next, err := l.meanwhile(ctx, src, before, p)
		if err != nil {
			l.collect(f) // what has landed by now need not be sent again
			return err
		}
		if err := l.settle(ctx, f, &out); err != nil {
			return err
		}
		before, p = out, next
		if ctx.Err() != nil && len(p.records) > 0 { // a stop in the middle of a large window
			return withTimeout(ctx, func(ctx context.Context) error { return l.advance(ctx, src, before) })
		}
	}
	return withTimeout(ctx, func(ctx context.Context) error {
		return l.record(func(also func(pgx.Tx) error) error { return src.finish(ctx, also) }, before)
	})
}

// between is what has to be done between two pages: a window can be long, and the lease, the partitions and the parked
// keys that are due do not wait for its end. Held rows are written down before any of them may be sent.
func (l *leader) between(ctx context.Context, src source, before *outcome) error {
	if err := l.tend(ctx); err != nil {
		return err
	}
	if l.flushDue() {
		if before.pos > 0 {
			if err := withTimeout(ctx, func(ctx context.Context) error { return l.advance(ctx, src, *before) }); err != nil {
				return err
			}
			*before = outcome{}
		}
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	return l.secure(ctx)
}

// advance records a page that is through.
func (l *leader) advance(ctx context.Context, src source, out outcome) error {
	return l.record(func(also func(pgx.Tx) error) error { return src.advance(ctx, out.pos, also) }, out)
}

// meanwhile is what is done while a page is in the air.
func (l *leader) meanwhile(ctx context.Context, src source, before outcome, p page) (next page, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		if before.pos > 0 {
			if err := l.advance(ctx, src, before); err != nil {
				return err
			}
		}
		if p.more {
			next, err = src.read(ctx, p.last())
		}
		return err
	})
	return next, err
}

// secure makes sure that the lease outlasts the flight to come.
func (l *leader) secure(ctx context.Context) error {
	if l.term.left() >= l.deadline() {
		return nil
	}
	err := withTimeout(ctx, func(ctx context.Context) error { return l.term.renew(ctx, l.conn) })
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
	out := outcome{pos: records[len(records)-1].position}
	if len(l.parked) == 0 && len(l.resumed) == 0 {
		return l.sender.launch(ctx, records), out
	}
	due := make([]record, 0, len(records))
	for _, r := range records {
		switch {
		case l.parked.has(r.name()):
			out.held = append(out.held, r)
		case !l.resumed[r.receipt()]:
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		return nil, out
	}
	return l.sender.launch(ctx, due), out
}
