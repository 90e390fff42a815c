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
	// MaxEventBytes limits an event with its headers. Default 900,000, at most 1,000,000: clients send no more by
	// default, and brokers take 1,048,588 with the frame of a batch.
	MaxEventBytes int
	// Validate checks the payload. Its error is wrapped in an [EventError]. Optional.
	Validate func(event.Event) error
	// OnConflict is ConflictError by default.
	OnConflict OnConflict
	// Log gets conflicts that OnConflict lets pass. Optional.
	Log *slog.Logger
	// Registerer takes the metric outbox_events_added_total{topic}. Optional.
	Registerer prometheus.Registerer
	// Spans makes a span for each event of a sampled request. Optional.
	Spans *event.Spans
}

const (
	defaultMaxEventBytes = 900_000
	limitMaxEventBytes   = 1_000_000
)

// Outbox adds events to callers' transactions. It holds no connection and is safe for concurrent use.
type Outbox struct {
	cfg   Config
	wake  chan struct{}
	added *prometheus.CounterVec
}

// New refuses a configuration that cannot work. It does not connect.
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

// Committed wakes the relay of this process after a commit that added events. It never blocks. Without it the relay
// polls.
func (o *Outbox) Committed() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

type noteKey struct{}

// WithNote returns a context in which [Outbox.Add] and [Outbox.Queue] call note before they add events, which may still
// roll back.
func WithNote(ctx context.Context, note func()) context.Context {
	return context.WithValue(ctx, noteKey{}, note)
}

// Wake gets a signal after [Outbox.Committed]. This process's relay is its one reader.
func (o *Outbox) Wake() <-chan struct{} { return o.wake }
