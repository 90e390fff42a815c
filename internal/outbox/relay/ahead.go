package relay

import (
	"context"

	"example.com/twinbox/internal/outbox/window"
)

// pagesAhead is how many pages wait while one is in the air. Reading is faster than sending; what waits only evens out
// the moments in which the connection is needed for something else.
const pagesAhead = 2

// ahead reads the pages behind the first one before they are asked for, in a goroutine of its own.
type ahead struct {
	pages chan window.Page // closed behind the last one, or when err is set
	quit  chan struct{}    // closed when no more are wanted
	err   error            // read it when pages is closed
}

func (l *leader) readAhead(ctx context.Context, first window.Page) *ahead {
	a := newAhead()
	if !first.More { // the usual case: nothing to start
		close(a.pages)
		return a
	}
	a.start(first.Last(), func(above int64) (p window.Page, err error) {
		err = l.session.do(ctx, func(ctx context.Context) error {
			p, err = l.window.Page(ctx, above)
			return err
		})
		return p, err
	})
	return a
}

func newAhead() *ahead {
	return &ahead{pages: make(chan window.Page, pagesAhead), quit: make(chan struct{})}
}

func (a *ahead) start(above int64, read func(above int64) (window.Page, error)) {
	go func() {
		defer close(a.pages)
		a.err = a.run(above, read)
	}()
}

func (a *ahead) run(above int64, read func(above int64) (window.Page, error)) error {
	for {
		select {
		case <-a.quit: // a page may have found room only because no more are wanted
			return nil
		default:
		}
		p, err := read(above)
		if err != nil || len(p.Records) == 0 {
			return err
		}
		above = p.Last()
		select {
		case a.pages <- p:
		case <-a.quit:
			return nil
		}
		if !p.More {
			return nil
		}
	}
}

// next waits for a page; without records it was the last.
func (a *ahead) next() (window.Page, error) {
	p, ok := <-a.pages
	if !ok {
		return window.Page{}, a.err
	}
	return p, nil
}

// stop returns when the reading has ended.
func (a *ahead) stop() {
	close(a.quit)
	for range a.pages { // what was read in vain
	}
}
