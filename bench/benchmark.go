package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

type benchmark struct {
	*stage
	name, title string
	plan        any
	sheet       *sheet
	goals       []goal
	prepare     func(context.Context) error
	parts       []part // in the order in which they run
}

// --only names a part.
type part struct {
	name  string
	once  bool // in one round alone
	steps []step
}

type step struct {
	name string
	run  func(context.Context) error
}

// measure returns a report and an error when it measured everything and could not clean up.
func (b *benchmark) measure(ctx context.Context, o options, notes io.Writer) (r *report, err error) {
	began, load := time.Now(), loadAverage()
	rounds := int(o.Rounds)
	if o.Quick {
		rounds = 1
	}
	err = b.withServers(ctx, o, notes, func() error {
		m, err := b.machine(ctx, load)
		if err != nil {
			return err
		}
		if err := b.prepare(ctx); err != nil {
			return err
		}
		if err := b.runSteps(ctx, notes, b.steps(o.Only, rounds)); err != nil {
			return err
		}
		r = b.report(m, o.Quick, rounds, time.Since(began))
		return nil
	})
	return r, err
}

// The variants of a part take turns in being first.
func (b *benchmark) steps(only []string, rounds int) []step {
	var all []step
	for _, p := range b.parts {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		times := rounds
		if p.once {
			times = 1
		}
		for round := range times {
			for i := range p.steps {
				s := p.steps[(i+round)%len(p.steps)]
				s.name = fmt.Sprintf("%s %d/%d: %s", p.name, round+1, times, s.name)
				all = append(all, s)
			}
		}
	}
	return all
}

// A benchmark that hangs names the step.
const stepTimeout = 10 * time.Minute

// Each figure gets the load average at the start of its step.
func (b *benchmark) runSteps(ctx context.Context, notes io.Writer, steps []step) error {
	began := time.Now()
	for i, s := range steps {
		took := time.Since(began).Round(time.Second)
		_, _ = fmt.Fprintf(notes, "%3d of %d %6s  %s\n", i+1, len(steps), took, s.name)
		b.sheet.load = loadAverage()
		stepCtx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("took longer than %s", stepTimeout))
		err := s.run(stepCtx)
		cancel()
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
