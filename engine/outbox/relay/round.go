package relay

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox/window"
)

// publishNext publishes one window, or what a restore left. It reports false if there is nothing new.
//
// It sends what is open page by page. While a page is in the air, those behind it are read, and what was taken before
// it is recorded if that is due. Nothing is recorded before it was taken.
func (l *leader) publishNext(ctx context.Context) (found bool, err error) {
	p, found, err := l.recorder.next(ctx)
	if err != nil || !found {
		return false, err
	}
	nextPage, stop := readAhead(ctx, p, l.readPage)
	defer stop()
	var taken outcome // not yet recorded
	for len(p.Records) > 0 {
		_, err := l.doChores(ctx, func(ctx context.Context) error { return l.recorder.advance(ctx, &taken) })
		if err != nil {
			return true, err
		}
		if err := l.session.secureLease(ctx); err != nil {
			return true, err
		}
		f, out := l.launch(ctx, p.Records)
		if l.recorder.isDue(taken, len(p.Records)) {
			if err := l.recorder.advance(ctx, &taken); err != nil {
				l.sender.collect(f) // what has landed by now need not be sent again
				return true, err
			}
		}
		if err := l.settle(ctx, f, &out); err != nil {
			return true, err
		}
		if !l.stuck() { // also behind a page of which nothing was to be sent
			l.health.markWell(stateLeading)
		}
		taken.pos, taken.events, taken.resumed = out.pos, taken.events+out.events, taken.resumed || out.resumed
		taken.parked, taken.held = append(taken.parked, out.parked...), append(taken.held, out.held...)
		if ctx.Err() != nil && p.More { // a stop in the middle of a large window
			return true, l.recorder.advance(ctx, &taken)
		}
		if p, err = nextPage(); err != nil {
			return true, err
		}
	}
	// What is through is left open. Not at a stop, nor while there is something to be written down with the end, nor what
	// an earlier session has taken.
	l.recorder.through = &taken
	if ctx.Err() != nil || taken.hasSetAside() || taken.resumed {
		return true, l.recorder.close(ctx)
	}
	return true, nil
}

func (l *leader) readPage(ctx context.Context, above int64) (p window.Page, err error) {
	err = l.session.do(ctx, func(ctx context.Context) error {
		p, err = l.window.Page(ctx, above)
		return err
	})
	return p, err
}

// launch sends the page's records, apart from those of parked keys and those that were taken in an earlier session.
func (l *leader) launch(ctx context.Context, records []window.Record) (*flight, outcome) {
	out := outcome{pos: records[len(records)-1].Position, events: len(records)}
	if len(l.parked.attempts) == 0 && len(l.resumed) == 0 {
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

// pagesAhead is how many pages wait while one is in the air. They even out calls of Publish that take longer, and the
// moments in which the connection is needed for something else.
const pagesAhead = 2

// readAhead reads the pages behind a first one before they are asked for, in a goroutine of its own. next waits for a
// page; without records it was the last. stop returns when the reading has ended. It goes on after the end of ctx: what
// is read last must be the last page.
func readAhead(
	ctx context.Context, first window.Page, read func(ctx context.Context, above int64) (window.Page, error),
) (next func() (window.Page, error), stop func()) {
	ctx, quit := context.WithCancel(context.WithoutCancel(ctx))
	pages := make(chan window.Page, pagesAhead) // closed behind the last one, or when err is set
	var failed error                            // read it when pages is closed
	go func() {
		defer close(pages)
		for p := first; p.More && ctx.Err() == nil; {
			if p, failed = read(ctx, p.Last()); failed != nil || len(p.Records) == 0 {
				return
			}
			select {
			case pages <- p:
			case <-ctx.Done():
			}
		}
	}()
	next = func() (window.Page, error) {
		if p, ok := <-pages; ok {
			return p, nil
		}
		return window.Page{}, failed
	}
	stop = func() {
		quit()
		for range pages { // what was read in vain
		}
	}
	return next, stop
}

// recorder opens windows and moves the cursor behind what was taken of them. A window that is through is closed by the
// change that opens the next one, or when none comes for a while.
type recorder struct {
	shared
	through    *outcome  // of the window that is open and through, if any: taken and not recorded
	recordedAt time.Time // the cursor was moved, or a window opened
}

// closeAfter is how long a window that is through stays open at rest: with 100 commits a second the next one comes
// sooner, and one change of the cursor serves both.
const closeAfter = 25 * time.Millisecond

// next opens the next window and reads its first page. It reports false if there is nothing new.
func (r *recorder) next(ctx context.Context) (first window.Page, found bool, err error) {
	err = r.session.do(ctx, func(ctx context.Context) (err error) {
		first, found, err = r.window.Next(ctx, r.through != nil)
		return err
	})
	switch {
	case err != nil:
		return first, false, err
	case !found && time.Since(r.recordedAt) < closeAfter:
		return first, false, nil
	case !found:
		return first, false, r.close(ctx)
	case r.through != nil:
		r.sender.unrecorded.forgetTo(r.through.pos)
		r.through = nil
	}
	r.recordedAt = time.Now()
	return first, true, nil
}

// waitToClose is how long the window that is through, if any, may stay open yet.
func (r *recorder) waitToClose() time.Duration {
	if r.through == nil {
		return math.MaxInt64
	}
	return max(closeAfter-time.Since(r.recordedAt), time.Millisecond)
}

// close records what is through, if anything.
func (r *recorder) close(ctx context.Context) error {
	if r.through == nil {
		return nil
	}
	err := r.record(ctx, r.window.Finish, *r.through)
	r.through = nil
	return err
}

// isDue decides whether what was taken is to be recorded while so many more are in the air. A commit per page
// would cost more than reading it. What waits is what a crash sends again, so there is a limit to it, in time and in
// events. What was set aside is written down at once, and so is what an earlier session has taken: if sessions keep
// breaking, each must get further than the last.
func (r *recorder) isDue(taken outcome, inTheAir int) bool {
	return taken.events > 0 && (taken.resumed || taken.hasSetAside() ||
		taken.events+inTheAir+r.cfg.BatchSize > r.cfg.MaxUnrecorded || // the next page could exceed it
		time.Since(r.recordedAt) >= r.cfg.RecordEvery)
}

// advance records what was taken, if anything, and that nothing is left to be recorded.
func (r *recorder) advance(ctx context.Context, taken *outcome) error {
	if taken.events == 0 {
		return nil
	}
	err := r.record(ctx, func(ctx context.Context, also func(pgx.Tx) error) error {
		return r.window.Advance(ctx, taken.pos, also)
	}, *taken)
	*taken = outcome{}
	return err
}

// record runs a change of the cursor together with what is to be written down, if anything, and then forgets what need
// not be remembered any more.
func (r *recorder) record(
	ctx context.Context, change func(ctx context.Context, also func(pgx.Tx) error) error, out outcome,
) error {
	err := r.session.do(ctx, func(ctx context.Context) error {
		if !out.hasSetAside() {
			return change(ctx, nil)
		}
		return change(ctx, func(tx pgx.Tx) error { return writeOutcome(ctx, tx, out) })
	})
	if err != nil {
		return err
	}
	r.recordedAt = time.Now()
	logParked(ctx, r.log, out.parked)
	r.sender.unrecorded.forgetTo(out.pos)
	return nil
}

// receipts are for what was taken and is not yet recorded. They outlive the session: a page that has to be read again
// because the database went away is not sent again.
type receipts []receipt

// receipt has the id beside the position, since a database that was set back gives a position to another event.
type receipt struct {
	position int64
	id       [16]byte
}

func receiptOf(r *window.Record) receipt { return receipt{r.Position, r.ID} }

// add drops receipts rather than grow without bound if nothing gets recorded: that costs duplicates, nothing else.
func (m *receipts) add(r *window.Record) {
	if len(*m) < maxBatchSize {
		*m = append(*m, receiptOf(r))
	}
}

// forgetTo is for rows that are recorded, up to a position.
func (m *receipts) forgetTo(pos int64) {
	*m = slices.DeleteFunc(*m, func(x receipt) bool { return x.position <= pos })
}

// asSet is for the next session, which asks it about each row.
func (m receipts) asSet() map[receipt]bool {
	set := make(map[receipt]bool, len(m))
	for _, r := range m {
		set[r] = true
	}
	return set
}
