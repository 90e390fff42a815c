package lease

import (
	"errors"
	"fmt"
	"time"
)

// What to do about an effect that may have happened.
const (
	Park   = "park"   // leave it to a person: at most once
	Resend = "resend" // try again: at least once
)

// Settings are the knobs of one handler. The tags are for frame/config; the zero value of a field is its default,
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
	Retention   time.Duration `env:"RETENTION" envDefault:"2160h" min:"0s" max:"87600h" doc:"how long a row is kept after its effect is done; 0s: for ever. A failed or uncertain row is kept until an operator decides"`
}

func (s Settings) withDefaults() Settings {
	fallback := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	fallback(&s.Lease, time.Minute)
	fallback(&s.Heartbeat, s.Lease/3)
	fallback(&s.Poll, time.Second)
	fallback(&s.RetryMin, 5*time.Second)
	fallback(&s.RetryMax, max(time.Hour, s.RetryMin))
	for _, field := range []struct {
		n  *int
		to int
	}{{&s.Workers, 4}, {&s.Batch, 16}, {&s.MaxAttempts, 50}} {
		if *field.n == 0 {
			*field.n = field.to
		}
	}
	if s.OnUncertain == "" {
		s.OnUncertain = Park
	}
	return s
}

func (s Settings) validate() error {
	var problems []error
	demand := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	demand(s.Workers > 0 && s.Batch > 0 && s.MaxAttempts > 0, "workers, batch and attempts must be positive")
	demand(s.Lease > 0 && s.Poll > 0 && s.RetryMin > 0, "lease, poll and pauses must be positive")
	demand(s.Heartbeat > 0 && s.Heartbeat <= s.Lease/2,
		"heartbeat %s is not within half of the lease %s", s.Heartbeat, s.Lease)
	demand(s.RetryMin <= s.RetryMax, "longest pause %s is shorter than the first %s", s.RetryMax, s.RetryMin)
	demand(s.OnUncertain == Park || s.OnUncertain == Resend, "unknown policy %q", s.OnUncertain)
	return errors.Join(problems...)
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
