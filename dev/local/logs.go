package local

import (
	"errors"
	"io"
	"log/slog"
	"os"

	"example.com/twinbox/internal/service"
)

// logs are the stack's log files, one per part. Everything is in the files; warnings and errors are also shown.
type logs struct {
	screen *screen
	files  []*os.File
}

func newLogs(show io.Writer, verbose bool) *logs { return &logs{screen: newScreen(show, verbose)} }

func (l *logs) open(f *folder, name string) (*os.File, error) {
	file, err := f.openLog(name)
	if err == nil {
		l.files = append(l.files, file)
	}
	return file, err
}

// logger gives a part's logger: JSON into its file, and what is wrong on the screen too, in one line without the time.
func (l *logs) logger(f *folder, part string) (*slog.Logger, error) {
	return l.loggerOf(f, part, "info", "json")
}

// loggerOf is [logs.logger] of a part that has settings for its file.
func (l *logs) loggerOf(f *folder, part, level, format string) (*slog.Logger, error) {
	log, err := l.fileLogger(f, part, level, format)
	if err != nil {
		return nil, err
	}
	return slog.New(slog.NewMultiHandler(log.Handler(), l.screen.handler(part))), nil
}

// fileLogger gives a logger that writes into the part's file alone.
func (l *logs) fileLogger(f *folder, part, level, format string) (*slog.Logger, error) {
	file, err := l.open(f, part+".log")
	if err != nil {
		return nil, err
	}
	return service.NewLogger(file, level, format)
}

func (l *logs) close() error {
	l.screen.close()
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
