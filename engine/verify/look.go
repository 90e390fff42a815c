package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch is what a second look compares: all events of some keys, and some ids of any key.
type watch struct {
	ids, keys map[uint64]bool
	labels    map[uint64]string // what the hashes are of
}

func watched(suspects []suspect, labels map[uint64]string) *watch {
	w := &watch{ids: map[uint64]bool{}, keys: map[uint64]bool{}, labels: labels}
	for _, s := range suspects {
		if s.ID != 0 {
			w.ids[s.ID] = true
		}
		if s.Key != 0 {
			w.keys[s.Key] = true
		}
	}
	return w
}

// look is one reading of everything.
type look struct {
	result
	cfg      Config
	watch    *watch // nil: everything is looked at
	of, this uint64 // how often both sides are read, and which time this is
	read     int64
	produced []Produced
	consumed []Consumed
}

func (l *look) run(ctx context.Context) error {
	l.off = l.cfg.off
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

// passes sets how often both sides are read.
func (l *look) passes(size int64) {
	l.of = uint64(1 + size/l.cfg.Window)
	if l.watch != nil {
		l.of = 1
	}
}

func (l *look) takes(id, key uint64) bool {
	if l.watch != nil {
		return l.watch.ids[id] || l.watch.keys[key]
	}
	return key%l.of == l.this
}

func (l *look) takesID(id uint64) bool {
	if l.watch != nil {
		return l.watch.ids[id]
	}
	return id%l.of == l.this
}

func (l *look) takesKey(key uint64) bool {
	if l.watch != nil {
		return l.watch.keys[key]
	}
	return key%l.of == l.this
}

// label remembers what a hash is of, for a finding.
func (l *look) label(hash uint64, text string) {
	if l.watch != nil && (l.watch.ids[hash] || l.watch.keys[hash]) {
		l.watch.labels[hash] = text
	}
}

func (l *look) step() {
	if l.read++; l.read%1000 == 0 && l.cfg.Progress != nil {
		l.cfg.Progress(l.read)
	}
}

func (l *look) old(at time.Time) bool { return l.cfg.Since != nil && at.Before(*l.cfg.Since) }

// check runs a registered check.
func (l *look) check(ctx context.Context, c Check) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, l.cfg.DB, options, func(tx pgx.Tx) error {
		findings, err := c.Run(ctx, tx)
		for _, f := range findings {
			f.Kind, f.Rule, f.Subject = Broken, Rule(c.Name), c.Name
			s := suspect{Kind: Broken, Subject: c.Name, Text: strings.Join([]string{f.EventID, f.Key, f.Detail}, "\x00")}
			l.suspect(f.Rule, s)
			if l.found == nil {
				l.found = map[suspect]Finding{}
			}
			s.Rule = f.Rule
			l.found[s] = f
		}
		return err
	})
}
