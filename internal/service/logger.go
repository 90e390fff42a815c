package service

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes records of the level (debug, info, warn or error) and above, as "text" or
// "json". Times are UTC, whatever TZ says: records of several machines are read side by side. Durations are text (25s)
// in both forms; slog's JSON would count nanoseconds.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	switch level {
	case "debug":
		threshold = slog.LevelDebug
	case "info":
		threshold = slog.LevelInfo
	case "warn":
		threshold = slog.LevelWarn
	case "error":
		threshold = slog.LevelError
	default:
		return nil, fmt.Errorf("create logger: unknown level %q", level)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: readable}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("create logger: unknown format %q", format)
}

func readable(groups []string, a slog.Attr) slog.Attr {
	switch {
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.Time(slog.TimeKey, a.Value.Time().UTC())
	}
	return a
}
