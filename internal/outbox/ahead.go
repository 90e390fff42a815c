package outbox

import "context"

// pagesAhead is how many pages wait while one is in the air. Reading is faster than sending; what waits only evens out
// the moments in which the connection is needed for something else.
const pagesAhead = 2

// ahead reads the pages behind a source's first one before they are asked for, in a goroutine of its own. It shares the
// leader's connection (see leader.onConn): pages read on another one could come from another server.
type ahead struct {
	pages chan page     // closed behind the last one, or when err is set
	quit  chan struct{} // closed when nobody wants more
	err   error         // read it when pages is closed
}

func (l *leader) readAhead(ctx context.Context, src source, first page) *ahead {
	a := &ahead{pages: make(chan page, pagesAhead), quit: make(chan struct{})}
	if !first.more { // the usual case: nothing to start
		close(a.pages)
		return a
	}
	a.start(first.last(), func(above int64) (p page, err error) {
		err = l.onConn(ctx, func(ctx context.Context) error {
			p, err = src.read(ctx, above)
			return err
		})
		return p, err
	})
	return a
}

func (a *ahead) start(above int64, read func(above int64) (page, error)) {
	go func() {
		defer close(a.pages)
		a.err = a.run(above, read)
	}()
}

func (a *ahead) run(above int64, read func(above int64) (page, error)) error {
	for {
		select {
		case <-a.quit: // a page may have found room only because nobody wants it any more
			return nil
		default:
		}
		p, err := read(above)
		if err != nil || len(p.records) == 0 {
			return err
		}
		above = p.last()
		select {
		case a.pages <- p:
		case <-a.quit:
			return nil
		}
		if !p.more {
			return nil
		}
	}
}

// next waits for a page; without records it was the last.
func (a *ahead) next() (page, error) {
	p, ok := <-a.pages
	if !ok {
		return page{}, a.err
	}
	return p, nil
}

// stop returns when nobody reads any more.
func (a *ahead) stop() {
	close(a.quit)
	for range a.pages { // what was read in vain
	}
}
