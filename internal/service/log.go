package service

import (
	"io"
	"log/slog"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/failure"
)

// NewLogger writes records of the level (debug, info, warn or error) and above, as "text" or "json". An unknown level
// is info, an unknown format JSON.
func NewLogger(w io.Writer, level, format string) *slog.Logger {
	var threshold slog.Level
	_ = threshold.UnmarshalText([]byte(level))
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: Readable}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

const maxLogText = 16 << 10 // room for a stack

// Readable is a ReplaceAttr: durations as text (25s), times in UTC, long texts cut.
func Readable(groups []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is && a.Value.Kind() == slog.KindAny {
		return slog.String(a.Key, failure.Brief(err.Error()))
	}
	switch {
	case a.Value.Kind() == slog.KindString:
		return slog.String(a.Key, failure.Cut(a.Value.String(), maxLogText))
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, config.Duration(a.Value.Duration()))
	case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.Time(slog.TimeKey, a.Value.Time().UTC())
	}
	return a
}
