package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Order is the order of a key's events. Versions count from 1.
type Order string

const (
	// Unordered applies events as they come. The default.
	Unordered Order = "unordered"
	// Latest skips an event whose version the key has reached: for events with the whole state.
	Latest Order = "latest"
	// Strict applies versions 1, 2, 3 ... and parks an event whose predecessor is missing or a dead letter. A consumer
	// that becomes strict later, or starts in the middle of its topic, parks every key: see AcceptGap of [Options].
	Strict Order = "strict"
)

// ConflictMode is the treatment of a processed id with another payload.
type ConflictMode string

const (
	// ConflictError makes it a dead letter. The default.
	ConflictError ConflictMode = "error"
	// ConflictWarn logs it and acknowledges it.
	ConflictWarn ConflictMode = "warn"
)

// Config configures a consumer's inbox. Consumer and Pool are required.
type Config struct {
	// Consumer is the inbox's name in the database. A renamed consumer has forgotten all events.
	Consumer string
	// Group is the consumer group, if the subscriber does not name it. Default: none.
	Group string
	// Pool is the database of the handlers' writes.
	Pool *pgxpool.Pool
	// Accepts reports whether a type has a handler. Default: every type.
	Accepts func(eventType string) bool
	// Validate checks an event. Its errors are permanent. Default: no check.
	Validate func(event.Event) error
	// Order of a key's events. Default: Unordered.
	Order Order
	// OnConflict is the treatment of a processed id with another payload. Default: ConflictError.
	OnConflict ConflictMode
	// Batch bounds the events of a transaction. Default: 200.
	Batch int
	// MaxAttempts bounds attempts with an unknown error, and those that end the process. Default: 5.
	MaxAttempts int
	// HandlerTimeout bounds one transaction. The group's rebalance timeout must be longer. Default: 10 s.
	HandlerTimeout time.Duration
	// RetryMin and RetryMax bound the pause between attempts. Default: 1 s and 30 s.
	RetryMin, RetryMax time.Duration
	// ResumeEvery is the time between two rounds of [Replayer.ResumeParked]. Default: 5 s.
	ResumeEvery time.Duration
	// Host is the program around the inbox. Default: [Standalone].
	Host Host
	// Log receives failed attempts and outcomes, no payload. Default: slog.Default.
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer
	// Spans records attempts at events of sampled traces. Default: none.
	Spans *event.Spans
}

func (c Config) withDefaults() Config {
	if c.Accepts == nil {
		c.Accepts = func(string) bool { return true }
	}
	if c.Validate == nil {
		c.Validate = func(event.Event) error { return nil }
	}
	c.Order = cmp.Or(c.Order, Unordered)
	c.OnConflict = cmp.Or(c.OnConflict, ConflictError)
	c.Batch = cmp.Or(c.Batch, 200)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 5)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 10*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.ResumeEvery = cmp.Or(c.ResumeEvery, 5*time.Second)
	c.Host = cmp.Or[Host](c.Host, Standalone{})
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

func (c Config) validate() error {
	switch {
	case c.Consumer == "" || c.Pool == nil:
		return errors.New("inbox: a consumer and a pool are required")
	case !slices.Contains([]Order{Unordered, Latest, Strict}, c.Order):
		return fmt.Errorf("inbox: order %q is none of unordered, latest, strict", c.Order)
	case !slices.Contains([]ConflictMode{ConflictError, ConflictWarn}, c.OnConflict):
		return fmt.Errorf("inbox: conflict mode %q is neither error nor warn", c.OnConflict)
	case min(c.Batch, c.MaxAttempts) < 1 || min(c.HandlerTimeout, c.RetryMin, c.ResumeEvery) <= 0:
		return errors.New("inbox: numbers and times must be positive")
	case c.RetryMax < c.RetryMin:
		return fmt.Errorf("inbox: longest pause %s is shorter than the first one %s", c.RetryMax, c.RetryMin)
	}
	return nil
}

func (c Config) backoff() failure.Backoff { return failure.Backoff{Min: c.RetryMin, Max: c.RetryMax} }

// Host is the program around the inbox. Embed [Standalone]. Several goroutines call it.
type Host interface {
	// AwaitResume waits while the consumer is paused, before each attempt. It returns an error only if ctx has ended.
	AwaitResume(ctx context.Context) error
	// Wait waits about d before the next attempt. It returns an error only if ctx has ended.
	Wait(ctx context.Context, failure error, d time.Duration) error
	// Attempted gets the result of each transaction. It must not block.
	Attempted(ctx context.Context, failure error)
	// Handled gets the outcome of each delivery. It must not block.
	Handled(e event.Event, outcome Outcome)
	// CopyDeadLetter runs in the transaction that stores a dead letter. Its error rolls that back. Parked events have no
	// copy.
	CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error
}

// Standalone is a [Host] that only waits.
type Standalone struct{}

// AwaitResume implements [Host].
func (Standalone) AwaitResume(context.Context) error { return nil }

// Wait implements [Host].
func (Standalone) Wait(ctx context.Context, _ error, d time.Duration) error {
	if err := failure.Sleep(ctx, d); err != nil {
		return fmt.Errorf("wait for next attempt: %w", err)
	}
	return nil
}

// Attempted implements [Host].
func (Standalone) Attempted(context.Context, error) {}

// Handled implements [Host].
func (Standalone) Handled(event.Event, Outcome) {}

// CopyDeadLetter implements [Host].
func (Standalone) CopyDeadLetter(context.Context, pgx.Tx, deadletter.Letter) error { return nil }

// Inbox is one consumer's inbox. It is safe for concurrent use.
type Inbox struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	limit   atomic.Int64 // events per transaction; reduced after a late batch

	mu    sync.Mutex
	owned map[topicPartition]*partition
}

// New checks the configuration and does not connect.
func New(cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	in := &Inbox{
		cfg: cfg, log: cfg.Log.With("consumer", cfg.Consumer), metrics: newMetrics(cfg.Registerer, cfg.Consumer),
		owned: map[topicPartition]*partition{},
	}
	in.limit.Store(int64(cfg.Batch))
	return in, nil
}
