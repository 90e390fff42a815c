package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
)

// Config configures the write side. The zero value works if every event names its source.
type Config struct {
	// Source is the source of events that name no other, such as "/twinbox/customer".
	Source string
	// MaxEventBytes limits an event with its headers. Default 900,000, at most 1,000,000, as clients send by default.
	MaxEventBytes int
	// Validate checks the payload. Its error is wrapped in an [EventError]. Optional.
	Validate func(event.Event) error
	// OnConflict decides about an event whose given id belongs to a different event. Default ConflictError.
	OnConflict OnConflict
	// Log records conflicts that OnConflict lets pass. Default: none.
	Log *slog.Logger
	// Registerer takes the metric outbox_events_added_total{topic}. Optional.
	Registerer prometheus.Registerer
	// Spans makes a span for each event that follows from a sampled request. Default: none.
	Spans *event.Spans
}

const (
	defaultMaxEventBytes = 900_000
	limitMaxEventBytes   = 1_000_000
)

// Outbox adds events to callers' transactions. It holds no connection. Any number of goroutines may use it.
type Outbox struct {
	cfg   Config
	wake  chan struct{}
	added *prometheus.CounterVec
}

// New refuses a configuration that cannot work. It connects to nothing.
func New(cfg Config) (*Outbox, error) {
	cfg.MaxEventBytes = cmp.Or(cfg.MaxEventBytes, defaultMaxEventBytes)
	cfg.OnConflict = cmp.Or(cfg.OnConflict, ConflictError)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Validate == nil {
		cfg.Validate = func(event.Event) error { return nil }
	}
	if cfg.MaxEventBytes < 0 || cfg.MaxEventBytes > limitMaxEventBytes {
		return nil, fmt.Errorf("largest event: %d is not within 1 to %d bytes", cfg.MaxEventBytes, limitMaxEventBytes)
	}
	if cfg.OnConflict != ConflictError && cfg.OnConflict != ConflictWarn {
		return nil, fmt.Errorf("on conflict: %q is neither %q nor %q", cfg.OnConflict, ConflictError, ConflictWarn)
	}
	o := &Outbox{cfg: cfg, wake: make(chan struct{}, 1), added: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "outbox_events_added_total",
		Help: "Events handed to callers' transactions, committed or not.",
	}, []string{"topic"})}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(o.added); err != nil {
			return nil, fmt.Errorf("register outbox metrics: %w", err)
		}
	}
	return o, nil
}

// Committed wakes the relay of this process. Call it after a commit that added events. It never blocks. Without a call
// the relay polls.
func (o *Outbox) Committed() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

type noteKey struct{}

// WithNote returns a context in which [Outbox.Add] and [Outbox.Queue] call note before they add events. The transaction
// may still roll back.
func WithNote(ctx context.Context, note func()) context.Context {
	return context.WithValue(ctx, noteKey{}, note)
}

// Wake receives a signal after [Outbox.Committed]. The relay of this process is its one reader.
func (o *Outbox) Wake() <-chan struct{} { return o.wake }
