package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// The policies for an effect that may have happened.
const (
	Park   = "park"   // leave it to an operator: at most once
	Resend = "resend" // try again: at least once
)

// Settings are the settings of one handler, read by internal/config. A zero Heartbeat is a third of the lease, a zero
// Retention forever.
type Settings struct {
	Workers     int           `env:"WORKERS" envDefault:"4" min:"1" max:"100" doc:"effects carried out side by side"`
	Lease       time.Duration `env:"LEASE" envDefault:"1m" min:"100ms" max:"1h" doc:"how long a claimed row is its claimant's without a heartbeat"`
	Heartbeat   time.Duration `env:"HEARTBEAT" envDefault:"0s" min:"0s" max:"20m" doc:"pause between two renewals of the leases held; 0s: a third of the lease"`
	Poll        time.Duration `env:"POLL" envDefault:"1s" min:"10ms" max:"1m" doc:"pause between looks for retries and rows of other processes; up to ten times as long without any"`
	MaxAttempts int           `env:"MAX_ATTEMPTS" envDefault:"50" min:"1" max:"1000" doc:"attempts before a row is given up; those that found the other side unreachable do not count"`
	RetryMin    time.Duration `env:"RETRY_MIN" envDefault:"5s" min:"10ms" max:"1h" doc:"pause after the first failed attempt; doubles each time"`
	RetryMax    time.Duration `env:"RETRY_MAX" envDefault:"1h" min:"10ms" max:"24h" doc:"longest pause between attempts"`
	OnUncertain string        `env:"ON_UNCERTAIN" envDefault:"park" oneof:"park resend" doc:"an effect that may have happened: park leaves it to an operator (at most once), resend tries again (at least once)"`
	Retention   time.Duration `env:"RETENTION" envDefault:"2160h" min:"0s" max:"87600h" doc:"how long a row is kept after its effect is done or skipped; 0s: for ever. A failed or uncertain row stays until an operator decides"`
}

// DefaultSettings returns the defaults of the tags.
func DefaultSettings() Settings {
	s, _ := env.ParseAsWithOptions[Settings](env.Options{Environment: map[string]string{}}) // nothing fails
	return s
}

func (s Settings) pause(attempt int) time.Duration {
	pause := float64(s.RetryMin) * math.Exp2(float64(attempt-1))
	return time.Duration(min(pause, float64(s.RetryMax)))
}

// Effect is the work of a row.
type Effect struct {
	// Do prepares the effect, calls [Claim.Begin], and takes the step. Its error decides:
	//
	//	nil                                  done
	//	[Skip]                               skipped
	//	permanent (see internal/failure)     failed
	//	transient                            tried again soon; the attempt does not count, and the worker pauses
	//	any other                            tried again after a growing pause, until the attempts are used up
	//
	// After Begin the table holds for errors marked with [Undone]. Any other error, and a panic, is uncertain. ctx ends
	// with Timeout or the lease, not with the process's shutdown.
	Do func(ctx context.Context, c *Claim) error
	// Done, if set, runs in the transaction that records the effect. at is the database's clock.
	Done func(ctx context.Context, tx pgx.Tx, c *Claim, at time.Time) error
	// Committed, if set, is called after that transaction.
	Committed func(c *Claim)
	// Purged, if set, runs in the transaction that removes old rows.
	Purged func(ctx context.Context, tx pgx.Tx, eventIDs []string) error
	// Timeout bounds one call of Do. Default: the lease.
	Timeout time.Duration
}

// Config configures a runner. Handler, Pool and Settings are required, and Effect for [Runner.Run].
type Config struct {
	Handler    string
	Pool       *pgxpool.Pool
	Settings   Settings
	Effect     Effect
	Timeout    time.Duration         // bounds the effect after Begin. Default: half of the lease
	Log        *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// New checks the configuration. It does not connect.
func New(cfg Config) (*Runner, error) {
	cfg.Settings.Heartbeat = cmp.Or(cfg.Settings.Heartbeat, cfg.Settings.Lease/3)
	cfg.Timeout = cmp.Or(cfg.Timeout, cfg.Settings.Lease/2)
	cfg.Effect.Timeout = cmp.Or(cfg.Effect.Timeout, cfg.Settings.Lease)
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("leases of %q: %w", cfg.Handler, err)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)).With("handler", cfg.Handler)
	return &Runner{cfg: cfg, metrics: newMetrics(cfg.Registerer, cfg.Handler), wake: make(chan struct{}, 1)}, nil
}

func (c Config) validate() error {
	s := c.Settings
	switch {
	case c.Handler == "" || c.Pool == nil:
		return errors.New("a handler and a pool are required")
	case min(s.Workers, s.MaxAttempts) <= 0 || min(s.Lease, s.Heartbeat, s.Poll, s.RetryMin, c.Timeout) <= 0:
		return errors.New("numbers and times must be positive")
	case s.Heartbeat > s.Lease/2 || c.Timeout >= s.Lease:
		return fmt.Errorf("the lease %s is too short for the heartbeat %s or the timeout %s", s.Lease, s.Heartbeat, c.Timeout)
	case s.RetryMin > s.RetryMax:
		return fmt.Errorf("longest pause %s is shorter than the first one %s", s.RetryMax, s.RetryMin)
	case s.OnUncertain != Park && s.OnUncertain != Resend:
		return fmt.Errorf("unknown policy %q", s.OnUncertain)
	}
	return nil
}
