package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"time"
)

// benchmark is one command's measurements on its stage.
type benchmark struct {
	name, title string
	plan        any // how much is measured
	sheet       *sheet
	goals       []goal
	prepare     func(context.Context) error
	parts       []part // in the order in which they run
}

// part is a set of measurements that --only can name.
type part struct {
	name  string
	once  bool // in one round alone
	steps []step
}

// step is one measurement.
type step struct {
	name string
	run  func(context.Context) error
}

// perform measures, prints the table and writes the result.
func (o options) perform(
	ctx context.Context, to streams, only []string, whole bool, on func(*stage) *benchmark,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("took longer than %s", o.Limit))
	defer cancel()
	r, err := measure(ctx, o, to, only, on)
	if r == nil {
		return err
	}
	return errors.Join(err, o.show(r, whole, to))
}

// measure returns a report and an error when it measured everything and could not clean up.
func measure(
	ctx context.Context, o options, to streams, only []string, on func(*stage) *benchmark,
) (r *report, err error) {
	rounds, err := o.rounds()
	if err != nil {
		return nil, err
	}
	began, load := time.Now(), loadAverage()
	st, err := openStage(ctx, o, to.err)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	m, err := st.machine(ctx, load)
	if err != nil {
		return nil, err
	}
	b := on(st)
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := b.run(ctx, to, b.steps(only, rounds), o.Profile); err != nil {
		return nil, err
	}
	return b.report(m, o.Quick, rounds, time.Since(began)), nil
}

// steps returns every step in the order in which they run. The variants of a part take turns in being first.
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

// stepTimeout bounds each step: a benchmark that hangs names the step.
const stepTimeout = 10 * time.Minute

func (b *benchmark) run(ctx context.Context, to streams, steps []step, profiles string) error {
	began := time.Now()
	for i, s := range steps {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
		}
		took := time.Since(began).Round(time.Second)
		_, _ = fmt.Fprintf(to.err, "%3d of %d %6s  %s\n", i+1, len(steps), took, s.name)
		b.sheet.load = loadAverage()
		if err := s.runProfiled(ctx, profiles); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

var noFileName = regexp.MustCompile(`[^a-zA-Z0-9]+`)

func (s step) runProfiled(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("took longer than %s", stepTimeout))
	defer cancel()
	if dir == "" {
		return s.run(ctx)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create profile folder: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, noFileName.ReplaceAllString(s.name, "-")+".pprof"))
	if err != nil {
		return fmt.Errorf("create profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("start profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return s.run(ctx)
}
