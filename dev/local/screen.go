package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"example.com/twinbox/internal/service"
)

// logs are one file per part, with every record. Warnings and errors are also shown.
type logs struct {
	folder *folder
	screen *screen
	files  []*os.File
}

func (l *logs) open(part string) (*os.File, error) {
	file, err := l.folder.openLog(part + ".log")
	if err == nil {
		l.files = append(l.files, file)
	}
	return file, err
}

// logger writes JSON into the part's file, and warnings on the screen without the time.
func (l *logs) logger(part string) (*slog.Logger, error) { return l.loggerOf(part, "info", "json") }

func (l *logs) loggerOf(part, level, format string) (*slog.Logger, error) {
	log, err := l.fileLogger(part, level, format)
	if err != nil {
		return nil, err
	}
	return slog.New(slog.NewMultiHandler(log.Handler(), l.screen.handler(part))), nil
}

func (l *logs) fileLogger(part, level, format string) (*slog.Logger, error) {
	file, err := l.open(part)
	if err != nil {
		return nil, err
	}
	return service.NewLogger(file, level, format)
}

func (l *logs) close() error {
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

const screenEvery = time.Minute

// screen shows the first warning with a message, and then one a minute with the number of those withheld. Messages are
// fixed strings.
type screen struct {
	verbose bool

	mu       sync.Mutex
	out      io.Writer
	messages map[message]*history
}

type message struct {
	part, text string
	level      slog.Level
}

type history struct {
	shownAt  time.Time
	withheld int // records since then
}

func newScreen(out io.Writer, verbose bool) *screen {
	return &screen{out: out, verbose: verbose, messages: map[message]*history{}}
}

func (s *screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(line)
}

func (s *screen) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = io.Discard
}

// held is the screen for a caller that has the lock.
type held struct{ *screen }

func (h held) Write(line []byte) (int, error) { return h.out.Write(line) }

func (s *screen) handler(part string) slog.Handler {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	text := slog.NewTextHandler(held{s}, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime})
	return &screenHandler{Handler: text.WithAttrs([]slog.Attr{slog.String("part", part)}), screen: s, source: part}
}

type screenHandler struct {
	slog.Handler

	screen *screen
	source string
}

func (h *screenHandler) Handle(ctx context.Context, r slog.Record) error {
	h.screen.mu.Lock()
	defer h.screen.mu.Unlock() // one line at a time, from all parts
	key := message{h.source, r.Message, r.Level}
	seen, isKnown := h.screen.messages[key]
	switch {
	case !isKnown:
		seen = &history{}
		h.screen.messages[key] = seen
	case !h.screen.verbose && r.Time.Sub(seen.shownAt) < screenEvery:
		seen.withheld++
		return nil
	case seen.withheld > 0:
		r.AddAttrs(slog.String("more", fmt.Sprintf("%d since the last line, all in %s.log", seen.withheld, h.source)))
	}
	*seen = history{shownAt: r.Time}
	return h.Handler.Handle(ctx, r)
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
