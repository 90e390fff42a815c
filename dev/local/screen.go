package local

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"example.com/twinbox/internal/service"
)

// logs are one file per part, with every record. Warnings and errors are also shown.
type logs struct {
	folder *folder
	screen *screen
	files  []*os.File
}

// maxLogBytes is the size at which the next start begins a new log, and keeps the last one as ".old".
const maxLogBytes = 16 << 20

func (l *logs) open(part string) (*os.File, error) {
	path := l.folder.file(part + ".log")
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("rename old log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.files = append(l.files, file)
	return file, nil
}

// logger writes JSON into the part's file, and warnings on the screen without the time.
func (l *logs) logger(part string) (*slog.Logger, error) { return l.loggerOf(part, "info", "json") }

func (l *logs) loggerOf(part, level, format string) (*slog.Logger, error) {
	file, err := l.open(part)
	if err != nil {
		return nil, err
	}
	log := service.NewLogger(file, level, format)
	return slog.New(slog.NewMultiHandler(log.Handler(), l.screen.handler(part))), nil
}

func (l *logs) close() error {
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

type screen struct {
	verbose bool

	mu  sync.Mutex
	out io.Writer
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

func (s *screen) handler(part string) slog.Handler {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	text := slog.NewTextHandler(s, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime})
	return text.WithAttrs([]slog.Attr{slog.String("part", part)})
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return service.Readable(groups, a)
}
