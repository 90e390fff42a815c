package lease

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// What to do about an effect that may have happened.
const (
	Park   = "park"   // leave it to a person: at most once
	Resend = "resend" // try again: at least once
)

// Settings are the knobs of one handler. The tags are for internal/config; the zero value of a field is its default,
// but for Retention, where it stands for ever.
type Settings struct {
	Workers     int           `env:"WORKERS" envDefault:"4" min:"1" max:"100" doc:"effects carried out side by side"`
	Batch       int           `env:"CLAIM_BATCH" envDefault:"16" min:"1" max:"1000" doc:"rows claimed at a time"`
	Lease       time.Duration `env:"LEASE" envDefault:"1m" min:"100ms" max:"1h" doc:"how long a claimed row is its claimant's without a heartbeat"`
	Heartbeat   time.Duration `env:"HEARTBEAT" envDefault:"0s" min:"0s" max:"20m" doc:"pause between two renewals of the leases held, at most half of the lease; 0s: a third of it"`
	Poll        time.Duration `env:"POLL" envDefault:"1s" min:"10ms" max:"1m" doc:"how often to look for rows without a wake-up: retries and rows that other processes left; up to ten times as long while there are none"`
	MaxAttempts int           `env:"MAX_ATTEMPTS" envDefault:"50" min:"1" max:"1000" doc:"attempts before a row is given up; those that found the other side unreachable do not count"`
	RetryMin    time.Duration `env:"RETRY_MIN" envDefault:"5s" min:"10ms" max:"1h" doc:"pause after the first failed attempt; doubles each time"`
	RetryMax    time.Duration `env:"RETRY_MAX" envDefault:"1h" min:"10ms" max:"24h" doc:"longest pause between attempts"`
	OnUncertain string        `env:"ON_UNCERTAIN" envDefault:"park" oneof:"park resend" doc:"an effect that may have happened: park leaves it to an operator (at most once), resend tries again (at least once)"`
	Retention   time.Duration `env:"RETENTION" envDefault:"2160h" min:"0s" max:"87600h" doc:"how long a row is kept after its effect is done or skipped; 0s: for ever. A failed or uncertain row is kept until an operator decides"`
}

func (s Settings) withDefaults() Settings {
	s.Workers, s.Batch, s.MaxAttempts = cmp.Or(s.Workers, 4), cmp.Or(s.Batch, 16), cmp.Or(s.MaxAttempts, 50)
	s.Lease = cmp.Or(s.Lease, time.Minute)
	s.Heartbeat = cmp.Or(s.Heartbeat, s.Lease/3)
	s.Poll = cmp.Or(s.Poll, time.Second)
	s.RetryMin = cmp.Or(s.RetryMin, 5*time.Second)
	s.RetryMax = cmp.Or(s.RetryMax, max(time.Hour, s.RetryMin))
	s.OnUncertain = cmp.Or(s.OnUncertain, Park)
	return s
}

func (s Settings) validate() error {
	switch {
	case min(s.Workers, s.Batch, s.MaxAttempts) <= 0, min(s.Lease, s.Heartbeat, s.Poll, s.RetryMin) <= 0:
		return errors.New("numbers and times must be positive")
	case s.Heartbeat > s.Lease/2:
		return fmt.Errorf("heartbeat %s is not within half of the lease %s", s.Heartbeat, s.Lease)
	case s.RetryMin > s.RetryMax:
		return fmt.Errorf("longest pause %s is shorter than the first %s", s.RetryMax, s.RetryMin)
	case s.OnUncertain != Park && s.OnUncertain != Resend:
		return fmt.Errorf("unknown policy %q", s.OnUncertain)
	}
	return nil
}

// pause is RetryMin, doubled for every attempt after the first, at most RetryMax.
func (s Settings) pause(attempt int) time.Duration {
	pause := s.RetryMin
	for range attempt - 1 {
		if pause *= 2; pause >= s.RetryMax {
			return s.RetryMax
		}
	}
	return pause
}

// Config describes a handler's effects. Handler and Pool are required, and to run it, Effect.
type Config struct {
	Handler    string        // names the effect; one row per handler and event
	Pool       *pgxpool.Pool // of the database that holds the table
	Settings   Settings
	Effect     Effect
	Timeout    time.Duration         // the longest that the effect may take after Begin. Default: half of the lease
	Log        *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: none
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Runner, error) {
	settings := cfg.Settings.withDefaults()
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("leases of %s: %w", cfg.Handler, err)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, settings.Lease/2)
	cfg.Effect.Timeout = cmp.Or(cfg.Effect.Timeout, settings.Lease)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Handler == "" || cfg.Pool == nil || cfg.Timeout <= 0 || cfg.Timeout >= settings.Lease {
		return nil, errors.New("leases: a handler, a pool and a timeout within the lease are required")
	}
	return &Runner{
		handler: cfg.Handler, pool: cfg.Pool, settings: settings, timeout: cfg.Timeout, effect: cfg.Effect,
		log: cfg.Log.With("handler", cfg.Handler), metrics: newMetrics(cfg.Registerer, cfg.Handler),
		wake: make(chan struct{}, 1), held: map[*Claim]bool{},
	}, nil
}
