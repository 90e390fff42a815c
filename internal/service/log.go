package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
)

// NewLogger returns a logger that writes records of the level (debug, info, warn or error) and above, as "text" or
// "json". Times are UTC with any TZ: operators read records of several machines side by side. Durations are text (25s)
// in both forms; slog's JSON would count nanoseconds.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("create logger: unknown level %q", level)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: Readable}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("create logger: unknown format %q", format)
}

// maxLogText is the longest text of a record that is no error's: room for a stack.
const maxLogText = 16 << 10

// Readable is what a logger does to each attribute (ReplaceAttr): durations as text, times in UTC, and no text longer
// than [failure.MaxText], for an error, or 16 KiB: errors and what they quote may come from the other side.
func Readable(groups []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is && a.Value.Kind() == slog.KindAny {
		return slog.String(a.Key, failure.Brief(err.Error()))
	}
	switch {
	case a.Value.Kind() == slog.KindString:
		return slog.String(a.Key, failure.Cut(a.Value.String(), maxLogText))
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.Time(slog.TimeKey, a.Value.Time().UTC())
	}
	return a
}

// LimitedLog is a handler that writes the first line of each kind in full and then one a minute for as long as there
// are more, with their number as "repeated". When there were none for a minute it says "no longer repeated", with the
// number of all of them. The lines between are lowered to debug: LOG_LEVEL=debug shows each.
//
// It applies to warnings and errors, and to lines about one of many, which carry an event_id or a request_id. A kind is
// a message with what names its cause: the code of its error, the consumer, the route, the status and the like
// (kindKeys). What tells single ones apart, such as ids, offsets and texts of errors, does not make another kind.
type LimitedLog struct {
	slog.Handler
	limits *logLimits
	kind   string // of the attributes that the logger adds to each line
	single bool   // they name one of many
}

// LimitLog limits what goes to the handler. told reports whether an error is part of an outage that is logged
// elsewhere: lines that carry one are lowered to debug.
func LimitLog(handler slog.Handler, told func(err error) bool) *LimitedLog {
	return &LimitedLog{Handler: handler, limits: &logLimits{told: told, kinds: map[string]*repeats{}}}
}

// repeatEvery is how often a kind of line is written while it goes on.
const repeatEvery = time.Minute

// kindKeys are the attributes that name a cause. Each has few values.
var kindKeys = map[string]bool{
	"class": true, "code": true, "consumer": true, "dependency": true, "for": true, "group": true, "handler": true,
	"method": true, "outcome": true, "permanent": true, "result": true, "route": true, "status": true, "task": true,
	"topic": true, "what": true,
}

// singleKeys name one of many.
var singleKeys = map[string]bool{"event_id": true, "request_id": true}

// maxKinds bounds the memory. Beyond it a kind is a message alone.
const maxKinds = 500

// Handle implements [slog.Handler].
func (l *LimitedLog) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelInfo {
		return l.Handler.Handle(ctx, record)
	}
	line, told := *l, false
	record.Attrs(func(attr slog.Attr) bool {
		if err, is := attr.Value.Any().(error); is && err != nil {
			told = told || l.limits.told(err)
			attr = slog.String("code", failure.Examine(err).Code)
		}
		line.add(attr)
		return true
	})
	isLimited := line.single || record.Level >= slog.LevelWarn
	if isLimited && (told || !l.limits.isFirst(line.kind, l.Handler, record)) {
		if record.Level = slog.LevelDebug; !l.Enabled(ctx, record.Level) {
			return nil
		}
	}
	return l.Handler.Handle(ctx, record)
}

// add makes an attribute part of what tells the lines' kind.
func (l *LimitedLog) add(attr slog.Attr) {
	l.single = l.single || singleKeys[attr.Key]
	if kindKeys[attr.Key] {
		l.kind += "\x00" + attr.Key + "=" + attr.Value.String()
	}
}

// WithAttrs implements [slog.Handler].
func (l *LimitedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	for _, attr := range attrs {
		with.add(attr)
	}
	with.Handler = l.Handler.WithAttrs(attrs)
	return &with
}

// WithGroup implements [slog.Handler].
func (l *LimitedLog) WithGroup(name string) slog.Handler {
	with := *l
	with.Handler = l.Handler.WithGroup(name)
	return &with
}

// Flush writes what was not written yet: a process that ends says how many there were.
func (l *LimitedLog) Flush() {
	l.limits.mu.Lock()
	defer l.limits.mu.Unlock()
	for _, r := range l.limits.kinds {
		r.timer.Stop()
		r.say()
	}
	clear(l.limits.kinds)
}

// logLimits are the kinds that go on at the moment.
type logLimits struct {
	told func(error) bool

	mu    sync.Mutex
	kinds map[string]*repeats
}

// repeats is a kind of line from its first one until there were none for a while.
type repeats struct {
	handler slog.Handler
	last    slog.Record
	since   time.Time
	unsaid  int // since the last line that was written
	all     int // after the first
	timer   *time.Timer
}

// isFirst reports whether a line is to be written. If not, it is counted.
func (l *logLimits) isFirst(kind string, handler slog.Handler, record slog.Record) bool {
	kind = record.Level.String() + record.Message + kind
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds[kind] == nil && len(l.kinds) >= maxKinds {
		kind = record.Level.String() + record.Message
	}
	if r := l.kinds[kind]; r != nil {
		r.handler, r.last = handler, record.Clone()
		r.unsaid++
		r.all++
		return false
	}
	l.kinds[kind] = &repeats{
		handler: handler, last: record.Clone(), since: time.Now(),
		timer: time.AfterFunc(repeatEvery, func() { l.tick(kind) }),
	}
	return true
}

// tick says how many there were, or that there are no more.
func (l *logLimits) tick(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.kinds[kind]; r != nil && r.say() { // nil: flushed meanwhile
		r.timer.Reset(repeatEvery)
	} else {
		delete(l.kinds, kind)
	}
}

// say writes the line that is due: the last one with the number of those before it, the end, or none when the first was
// the only one. It reports whether the kind goes on.
func (r *repeats) say() (goesOn bool) {
	record := r.last.Clone()
	switch {
	case r.unsaid > 0:
		goesOn = true
		record.Time = time.Now()
		record.AddAttrs(slog.Int("repeated", r.unsaid))
		r.unsaid = 0
	case r.all > 0:
		end := slog.NewRecord(time.Now(), slog.LevelInfo, "no longer repeated", 0)
		end.AddAttrs(slog.String("line", record.Message), slog.Int("repeated", r.all),
			slog.Time("first", r.since.UTC()), slog.Time("last", record.Time.UTC()))
		record = end
	default:
		return false
	}
	if ctx := context.Background(); r.handler.Enabled(ctx, record.Level) {
		_ = r.handler.Handle(ctx, record) // an error of the log cannot be logged
	}
	return goesOn
}
