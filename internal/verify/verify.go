package verify

import (
	"context"
	"fmt"
	"slices"
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
	// Window is about how many rows, and records, are in memory at once. Default 500,000: 64 MB of both.
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
	// OnlyWarns means that it only logs an id that comes back with another payload.
	OnlyWarns bool
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
	rows, err := readStanding(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	verdict := &Verdict{
		At: time.Now().UTC(), Since: cfg.Since, Checks: []string{}, Findings: []Finding{}, Unverifiable: []Unverifiable{},
	}
	for _, c := range cfg.Checks {
		verdict.Checks = append(verdict.Checks, c.Name)
	}
	first := &look{cfg: cfg, verdict: verdict, rows: rows}
	if err := first.run(ctx); err != nil {
		return nil, err
	}
	suspects := first.suspects
	if more := len(suspects) - maxSuspects; more > 0 {
		suspects = suspects[:maxSuspects]
		first.cannot("suspects", NotLookedAt, int64(more))
	}
	labels := map[uint64]string{}
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
		again := &look{cfg: cfg, verdict: &Verdict{}, watched: map[uint64]bool{}, labels: labels}
		again.cfg.Since = nil
		for _, s := range suspects {
			again.watched[s.id], again.watched[s.key] = s.id != 0, s.key != 0
		}
		if err := again.run(ctx); err != nil {
			return nil, err
		}
		suspects = both(suspects, again.suspects)
	}
	for _, s := range suspects {
		f := s.Finding
		if f.Kind != Broken {
			f.EventID, f.Key, f.Detail = labels[s.id], labels[s.key], details[f.Rule][f.Kind]
		}
		verdict.Findings = append(verdict.Findings, f)
	}
	return verdict, nil
}

// both are the suspects of two looks, each once.
func both(a, b []suspect) []suspect {
	second := make(map[suspect]bool, len(b))
	for _, s := range b {
		second[s] = true
	}
	return slices.DeleteFunc(a, func(s suspect) bool {
		found := second[s]
		delete(second, s)
		return !found
	})
}

// look is one reading of everything.
type look struct {
	cfg      Config
	verdict  *Verdict // its counts, and what cannot be verified
	suspects []suspect

	watched map[uint64]bool   // ids, and keys of which all events are compared; nil: everything is
	labels  map[uint64]string // what these hashes are of

	rows     int64  // about how many the outbox has
	of, this uint64 // how often both sides are read, and which time this is
	read     int64
}

func (l *look) run(ctx context.Context) error {
	if err := l.lookAtProduced(ctx); err != nil {
		return err
	}
	for _, c := range l.cfg.Consumers {
		if err := l.lookAtConsumed(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	for _, c := range l.cfg.Checks {
		if err := l.check(ctx, c); err != nil {
			return fmt.Errorf("check %s: %w", c.Name, err)
		}
	}
	return nil
}

// passes calls pass as often as both sides must be read, so that what is kept of them fits into the window.
func (l *look) passes(size int64, pass func() error) error {
	l.of = uint64(1 + size/l.cfg.Window)
	if l.watched != nil {
		l.of = 1
	}
	for l.this = 0; l.this < l.of; l.this++ {
		if err := pass(); err != nil {
			return err
		}
	}
	return nil
}

// takes says whether what has the hash, of an id or of a key, is compared in this pass.
func (l *look) takes(hash uint64) bool {
	if l.watched != nil {
		return l.watched[hash]
	}
	return hash%l.of == l.this
}

// takesAll is takes of all facts of a key, and of some ids of any key.
func (l *look) takesAll(f fact) bool { return l.takes(f.key) || l.watched[f.id] }

// label remembers what a hash is of, for a finding.
func (l *look) label(hash uint64, text string) {
	if l.watched[hash] {
		l.labels[hash] = text
	}
}

func (l *look) step() {
	if l.read++; l.read%1000 == 0 && l.cfg.Progress != nil {
		l.cfg.Progress(l.read)
	}
}

func (l *look) old(at time.Time) bool { return l.cfg.Since != nil && at.Before(*l.cfg.Since) }

func (l *look) suspect(s suspect) {
	if s.Rule != l.cfg.off {
		l.suspects = append(l.suspects, s)
	}
}

// cannot counts what cannot be verified.
func (l *look) cannot(subject string, why Reason, n int64) {
	if n == 0 {
		return
	}
	all := &l.verdict.Unverifiable
	i := slices.IndexFunc(*all, func(u Unverifiable) bool { return u.Subject == subject && u.Reason == why })
	if i < 0 {
		i = len(*all)
		*all = append(*all, Unverifiable{Subject: subject, Reason: why})
	}
	(*all)[i].Events += n
}

// check runs a registered check.
func (l *look) check(ctx context.Context, c Check) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, l.cfg.DB, options, func(tx pgx.Tx) error {
		findings, err := c.Run(ctx, tx)
		for _, f := range findings {
			f.Kind, f.Rule, f.Subject = Broken, Rule(c.Name), c.Name
			l.suspect(suspect{Finding: f})
		}
		return err
	})
}

// comparison is of two sides of a topic: an outbox and the topic, or the topic and an inbox.
type comparison struct {
	*look
	subject string // the topic, or the consumer
	parts   []part
}

func (c *comparison) suspect(rule Rule, kind Kind, f fact) {
	c.look.suspect(suspect{Finding{Kind: kind, Rule: rule, Subject: c.subject, Version: f.version}, f.id, f.key})
}

func (c *comparison) cannot(why Reason) { c.look.cannot(c.subject, why, 1) }
