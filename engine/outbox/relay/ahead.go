package relay

import (
	"context"

	"example.com/twinbox/engine/outbox/window"
)

// pagesAhead is how many pages wait while one is in the air. They even out calls of Publish that take longer, and the
// moments in which the connection is needed for something else.
const pagesAhead = 2

// ahead reads the pages behind a first one before they are asked for, in a goroutine of its own.
type ahead struct {
	pages chan window.Page   // closed behind the last one, or when err is set
	err   error              // read it when pages is closed
	quit  context.CancelFunc // no more are wanted
}

// readAhead goes on after the end of ctx: what is read last must be the last page.
func readAhead(
	ctx context.Context, first window.Page, read func(ctx context.Context, above int64) (window.Page, error),
) *ahead {
	ctx, quit := context.WithCancel(context.WithoutCancel(ctx))
	a := &ahead{pages: make(chan window.Page, pagesAhead), quit: quit}
	go func() {
		defer close(a.pages)
		for p := first; p.More && ctx.Err() == nil; {
			if p, a.err = read(ctx, p.Last()); a.err != nil || len(p.Records) == 0 {
				return
			}
			select {
			case a.pages <- p:
			case <-ctx.Done():
			}
		}
	}()
	return a
}

// next waits for a page; without records it was the last.
func (a *ahead) next() (window.Page, error) {
	if p, ok := <-a.pages; ok {
		return p, nil
	}
	return window.Page{}, a.err
}

// stop returns when the reading has ended.
func (a *ahead) stop() {
	a.quit()
	for range a.pages { // what was read in vain
	}
}
