package local

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"example.com/twinbox/internal/service"
)

// screenEvery is how often one message of a part is shown. The files have every record.
const screenEvery = time.Minute

// screen shows what goes wrong in lines for a person, bounded: the first record of a message, and once a minute how
// many more there were. Messages are fixed strings, so a flood of one is one line a minute, with any values.
type screen struct {
	out     io.Writer
	verbose bool // show everything

	mu       sync.Mutex
	withheld map[shown]*more
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// shown is what a line is about.
type shown struct {
	part, message string
	level         slog.Level
}

// more counts the records of a message that were not shown since the last line about it.
type more struct{ count int }

// newScreen returns a screen that is to be closed.
func newScreen(out io.Writer, verbose bool) *screen {
	s := &screen{out: out, verbose: verbose, withheld: map[shown]*more{}, stop: make(chan struct{})}
	s.stopped.Go(s.run)
	return s
}

func (s *screen) run() {
	tick := time.NewTicker(screenEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sum()
		case <-s.stop:
			s.sum()
			return
		}
	}
}

// sum says what was withheld. A message that was quiet for a minute is new again.
func (s *screen) sum() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for about, m := range s.withheld {
		if m.count == 0 {
			delete(s.withheld, about)
			continue
		}
		_, _ = fmt.Fprintf(s.out, "level=%s part=%s: %d more of %q within a minute; all of them are in %s.log\n",
			about.level, about.part, m.count, about.message, about.part)
		m.count = 0
	}
}

func (s *screen) close() {
	close(s.stop)
	s.stopped.Wait()
}

// handler gives a part its place on the screen.
func (s *screen) handler(part string) slog.Handler {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	text := slog.NewTextHandler(s.out, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime})
	return &screenHandler{Handler: text.WithAttrs([]slog.Attr{slog.String("part", part)}), screen: s, source: part}
}

// screenHandler is a part's handler: one that writes, behind what the screen withholds.
type screenHandler struct {
	slog.Handler

	screen *screen
	source string
}

func (h *screenHandler) Handle(ctx context.Context, r slog.Record) error {
	h.screen.mu.Lock()
	defer h.screen.mu.Unlock() // one line at a time, from all parts
	if h.screen.withholds(shown{h.source, r.Message, r.Level}) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// withholds counts a record and decides. The caller has the lock.
func (s *screen) withholds(about shown) bool {
	if s.verbose {
		return false
	}
	if m, known := s.withheld[about]; known {
		m.count++
		return true
	}
	s.withheld[about] = &more{}
	return false
}

func (h *screenHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &screenHandler{Handler: h.Handler.WithAttrs(attrs), screen: h.screen, source: h.source}
}

func (h *screenHandler) WithGroup(name string) slog.Handler {
	return &screenHandler{Handler: h.Handler.WithGroup(name), screen: h.screen, source: h.source}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return service.Readable(groups, a)
}
