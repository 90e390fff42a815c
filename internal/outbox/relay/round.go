package relay

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/outbox/window"
)

// publishNext publishes one window, or what a restore left. It reports false if there is nothing new.
//
// It sends what is open page by page. While a page is in the air, those behind it are read, and what was taken before
// it is recorded if that is due. Nothing is recorded before it was taken.
func (l *leader) publishNext(ctx context.Context) (found bool, err error) {
	p, found, err := l.openNext(ctx)
	if err != nil || !found {
		return false, err
	}
	pages, stop := readAhead(ctx, p, l.readPage)
	defer stop()
	for len(p.Records) > 0 {
		if _, err := l.doChores(ctx); err != nil {
			return true, err
		}
		if err := l.secureLease(ctx, l.sendingTime); err != nil {
			return true, err
		}
		f, out := l.launchPage(ctx, p.Records)
		if l.recordIsDue(len(p.Records)) {
			if err := l.record(ctx); err != nil {
				_, _ = l.collect(f) // what has landed by now need not be sent again
				return true, err
			}
		}
		if err := l.settle(ctx, f, false, &out); err != nil {
			return true, err
		}
		l.markWellUnlessStuck() // also behind a page of which nothing was to be sent
		l.taken.pos, l.taken.events, l.taken.resumed = out.pos, l.taken.events+out.events, l.taken.resumed || out.resumed
		l.taken.parked, l.taken.held = append(l.taken.parked, out.parked...), append(l.taken.held, out.held...)
		if ctx.Err() != nil && p.More { // a stop in the middle of a large window
			return true, l.record(ctx)
		}
		next := <-pages
		if p = next.Page; next.err != nil {
			return true, next.err
		}
	}
	// What is through is left open. Not at a stop, nor while there is something to be written down with the end, nor what
	// an earlier session has taken.
	l.through = true
	if ctx.Err() != nil || l.taken.resumed || len(l.taken.held) > 0 {
		return true, l.record(ctx)
	}
	return true, nil
}

// openNext opens the next window and reads its first page. It reports false if there is nothing new. A window that is
// through is closed by the change that opens the next one, or when none comes for a while.
func (l *leader) openNext(ctx context.Context) (first window.Page, found bool, err error) {
	err = l.do(ctx, func(ctx context.Context) (err error) {
		first, found, err = l.window.Next(ctx, l.through)
		return err
	})
	switch {
	case err != nil || !found && time.Since(l.recordedAt) < closeAfter:
		return first, false, err
	case !found:
		return first, false, l.record(ctx)
	}
	l.noteRecorded()
	return first, true, nil
}

func (l *leader) readPage(ctx context.Context, above int64) (p window.Page, err error) {
	err = l.do(ctx, func(ctx context.Context) error {
		p, err = l.window.Page(ctx, above)
		return err
	})
	return p, err
}

// launchPage sends the page's records, apart from those of parked keys and those that were taken in an earlier session.
func (l *leader) launchPage(ctx context.Context, records []window.Record) (*flight, outcome) {
	out := outcome{pos: records[len(records)-1].Position, events: len(records)}
	if len(l.parked) == 0 && len(l.resumed) == 0 {
		return l.launch(ctx, records), out
	}
	due := make([]window.Record, 0, len(records))
	for _, r := range records {
		switch {
		case l.parked[r.Key()] > 0:
			out.held = append(out.held, r)
		case l.resumed[receipt{r.Position, r.ID}]:
			out.resumed = true
		default:
			due = append(due, r)
		}
	}
	return l.launch(ctx, due), out
}

// outcome is what became of the rows of a page that is through, or of several.
type outcome struct {
	pos     int64 // the last position
	events  int
	resumed bool // some were taken in an earlier session
	parked  []parking
	held    []window.Record // the rows of parked keys
}

// pagesAhead is how many pages wait while one is in the air. They even out calls of Publish that take longer, and the
// moments in which the connection is needed for something else.
const pagesAhead = 2

// pageAhead has no records behind the last page.
type pageAhead struct {
	window.Page
	err error
}

// readAhead reads the pages behind a first one before they are asked for, in a goroutine of its own. stop returns when
// the reading has ended. It goes on after the end of ctx: what is read last must be the last page.
func readAhead(
	ctx context.Context, first window.Page, read func(ctx context.Context, above int64) (window.Page, error),
) (<-chan pageAhead, func()) {
	ctx, quit := context.WithCancel(context.WithoutCancel(ctx))
	pages := make(chan pageAhead, pagesAhead) // closed behind the last one
	go func() {
		defer close(pages)
		for p := (pageAhead{Page: first}); p.More && ctx.Err() == nil; {
			if p.Page, p.err = read(ctx, p.Last()); len(p.Records) == 0 && p.err == nil {
				return
			}
			select {
			case pages <- p:
			case <-ctx.Done():
			}
		}
	}()
	return pages, func() {
		quit()
		for range pages { // what was read in vain
		}
	}
}

// closeAfter is how long a window that is through stays open at rest: with 100 commits a second the next one comes
// sooner, and one change of the cursor serves both.
const closeAfter = 25 * time.Millisecond

// recordIsDue decides whether what was taken is to be recorded while so many more are in the air. A commit per page
// would cost more than reading it. What waits is what a crash sends again, so there is a limit to it, in time and in
// events. What was set aside is written down at once, and so is what an earlier session has taken: if sessions keep
// breaking, each must get further than the last.
func (l *leader) recordIsDue(inTheAir int) bool {
	return l.taken.events > 0 && (l.taken.resumed || len(l.taken.held) > 0 ||
		l.taken.events+inTheAir+l.cfg.BatchSize > l.cfg.MaxUnrecorded || // the next page could exceed it
		time.Since(l.recordedAt) >= l.cfg.RecordEvery)
}

// record moves the cursor behind what was taken, if anything, together with what is to be written down, and closes the
// window if it is through.
func (l *leader) record(ctx context.Context) error {
	if l.taken.events == 0 && !l.through {
		return nil
	}
	err := l.do(ctx, func(ctx context.Context) error {
		var also func(pgx.Tx) error
		if len(l.taken.held) > 0 {
			also = func(tx pgx.Tx) error { return writeOutcome(ctx, tx, l.taken.parked, holdSQL, l.taken.held) }
		}
		if l.through {
			return l.window.Finish(ctx, also)
		}
		return l.window.Advance(ctx, l.taken.pos, also)
	})
	if err == nil {
		logParked(ctx, l.cfg.Log, l.taken.parked)
		l.noteRecorded()
	}
	return err
}

// noteRecorded forgets what need not be remembered any more.
func (l *leader) noteRecorded() {
	l.unrecorded = slices.DeleteFunc(l.unrecorded, func(x receipt) bool { return x.position <= l.taken.pos })
	l.taken, l.through, l.recordedAt = outcome{}, false, time.Now()
}

// receipt is for a row that was taken. It has the id beside the position, since a database that was set back gives a
// position to another event.
type receipt struct {
	position int64
	id       [16]byte
}
