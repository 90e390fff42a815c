package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event/cloudevent"
)

// Config configures the write side. The zero value works if every event names its source.
type Config struct {
	// Source is the source of events that name no other, such as "/twinbox/customer".
	Source string
	// MaxEventBytes limits an event with its headers. Default 900,000, at most 1,000,000. By default a broker takes
	// 1,048,588 bytes with the frame of a batch, and a client sends 1,000,000.
	MaxEventBytes int
	// Validate checks the payload, for example by its schema. Its error is wrapped in an [EventError]. Optional.
	Validate func(cloudevent.Event) error
	// OnConflict decides about an event whose given id belongs to a different event. Default ConflictError.
	OnConflict OnConflict
	// Log records conflicts that OnConflict lets pass. Default: none.
	Log *slog.Logger
	// Registerer takes the metric outbox_events_added_total{topic}. Optional.
	Registerer prometheus.Registerer
	// Spans makes a span for each event that follows from a sampled request. Default: none.
	Spans *cloudevent.Spans
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

// New returns a [*CheckError] for a configuration that cannot work.
func New(cfg Config) (*Outbox, error) {
	cfg.MaxEventBytes = cmp.Or(cfg.MaxEventBytes, defaultMaxEventBytes)
	cfg.OnConflict = cmp.Or(cfg.OnConflict, ConflictError)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Validate == nil {
		cfg.Validate = func(cloudevent.Event) error { return nil }
	}
	var refused CheckError
	refused.RefuseIf(cfg.MaxEventBytes < 0 || cfg.MaxEventBytes > limitMaxEventBytes, "max_event_bytes",
		fmt.Sprintf("%d is not within 1 to %d", cfg.MaxEventBytes, limitMaxEventBytes))
	refused.RefuseIf(cfg.OnConflict != ConflictError && cfg.OnConflict != ConflictWarn, "on_conflict",
		fmt.Sprintf("%q is neither %q nor %q", cfg.OnConflict, ConflictError, ConflictWarn))
	if err := refused.Err(); err != nil {
		return nil, err
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

// Committed wakes the relay of this process. Call it after a commit that added events. It never blocks and costs
// nanoseconds. Needless and missing calls do no harm: the relay also polls.
func (o *Outbox) Committed() {
	select {
	case o.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// Wake receives a signal after calls of [Outbox.Committed]. The relay of this process is its one reader.
func (o *Outbox) Wake() <-chan struct{} { return o.wake }

// A CheckError lists all problems that keep an outbox or a relay from working. A service that is starting should treat
// it as a configuration error: a new try changes nothing.
type CheckError struct {
	Problems []Problem
}

// Problem is one problem of a [CheckError]. The codes are stable.
type Problem struct {
	Code   string
	Detail string
}

func (e *CheckError) Error() string {
	problems := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		problems[i] = p.Code + ": " + p.Detail
	}
	return "outbox refuses to work: " + strings.Join(problems, "; ")
}

// Has reports whether the error has a problem of that code.
func (e *CheckError) Has(code string) bool {
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Code == code })
}

// RefuseIf adds a problem if wrong is true.
func (e *CheckError) RefuseIf(wrong bool, code, detail string) {
	if wrong {
		e.Problems = append(e.Problems, Problem{code, detail})
	}
}

// Ask adds the problems that a statement selects, as rows of a code and a detail.
func (e *CheckError) Ask(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string, args ...any,
) error {
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Problem])
	e.Problems = append(e.Problems, found...)
	return err
}

// Err returns e, or nil without a problem.
func (e *CheckError) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
