package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config is what is verified.
type Config struct {
	DB  DB
	Log Log
	// Source is that of the service's events. Empty: no record is taken for a ghost.
	Source string
	// Topics are those that the service writes to.
	Topics []string
	// Consumers are the service's.
	Consumers []Consumer
	// Checks are the service's own.
	Checks []Check
	// Since, if set, leaves out events from before that time, by their own time.
	Since *time.Time
	// Window is about how many rows, and records, are in memory at once. Default 500,000: 56 MB of both.
	Window int64
	// Pause waits between two looks at what is suspected: for longer than what is under way may take, which is a lease and
	// a batch. Required.
	Pause func(context.Context) error
	// Progress, if set, is called with how many rows and records were read so far, each time at least.
	Progress func(read int64)
	// Suspected, if set, is called before suspects are looked at again, with how many there are.
	Suspected func(n int)

	off Rule
}

// Consumer is a consumer of the service.
type Consumer struct {
	Name, Group, Topic string
	// Versioned says that it keeps the order of the versions.
	Versioned bool
	// Accepts says whether it has a handler for a type of events.
	Accepts func(eventType string) bool
}

// Check looks in the service's own tables for what its events have not done, or done twice. It runs in a read-only
// transaction that sees one moment. Of what it returns Kind, Rule and Subject are set by the caller.
type Check struct {
	Name string
	Run  func(ctx context.Context, tx pgx.Tx) ([]Finding, error)
}

const (
	defaultWindow = 500_000
	looksAgain    = 2
	maxSuspects   = 1000
)

// Run verifies once. An error says that there is no verdict: a side could not be read.
func Run(ctx context.Context, cfg Config) (*Verdict, error) {
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
	}
	if err := checkStanding(ctx, cfg.DB); err != nil {
		return nil, err
	}
	verdict := &Verdict{At: time.Now().UTC(), Since: cfg.Since, Checks: []string{}, Findings: []Finding{}}
	first := &look{cfg: cfg}
	if err := first.run(ctx); err != nil {
		return nil, err
	}
	verdict.Produced, verdict.Consumed, verdict.Unverifiable = first.produced, first.consumed, first.unverifiable
	for _, c := range cfg.Checks {
		verdict.Checks = append(verdict.Checks, c.Name)
	}
	suspects := first.suspects
	if more := len(suspects) - maxSuspects; more > 0 {
		suspects = suspects[:maxSuspects]
		first.cannot("suspects", NotLookedAt, int64(more))
		verdict.Unverifiable = first.unverifiable
	}
	if verdict.Unverifiable == nil {
		verdict.Unverifiable = []Unverifiable{}
	}
	labels := map[uint64]string{}
	found := map[suspect]Finding{}
	for range looksAgain {
		if len(suspects) == 0 {
			return verdict, nil
		}
		if cfg.Suspected != nil {
			cfg.Suspected(len(suspects))
		}
		if err := cfg.Pause(ctx); err != nil {
			return nil, fmt.Errorf("wait before looking again: %w", err)
		}
		again := &look{cfg: cfg, watch: watched(suspects, labels)}
		again.cfg.Since = nil
		if err := again.run(ctx); err != nil {
			return nil, err
		}
		suspects, found = both(suspects, again.suspects), again.found
	}
	for _, s := range suspects {
		verdict.Findings = append(verdict.Findings, s.finding(labels, found))
	}
	return verdict, nil
}

// both are the suspects of two looks.
func both(a, b []suspect) (common []suspect) {
	second := make(map[suspect]bool, len(b))
	for _, s := range b {
		second[s] = true
	}
	for _, s := range a {
		if second[s] {
			common = append(common, s)
			delete(second, s)
		}
	}
	return common
}
