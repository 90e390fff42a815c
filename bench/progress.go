package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// step is one thing that a benchmark does. Its weight is about how many seconds it takes, for the bar.
type step struct {
	name   string
	weight float64
	run    func(context.Context) error
	spare  bool // another round of something measured before: left out when time is short
}

// interleave lays out the rounds of a measurement: its variants take turns, and another one begins each round.
func interleave(name string, rounds int, stepsOf func(round int) []step) []step {
	var all []step
	for round := range rounds {
		turn := stepsOf(round)
		for i := range turn {
			s := turn[(i+round)%len(turn)]
			s.spare = round > 0
			s.name = fmt.Sprintf("%s %d/%d: %s", name, round+1, rounds, s.name)
			all = append(all, s)
		}
	}
	return all
}

// onceFirst moves spare steps to the end: everything once before anything twice.
func onceFirst(steps []step) {
	order := func(s step) int {
		if s.spare {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(steps, func(x, y step) int { return order(x) - order(y) })
}

// stepTimeout bounds each step: a benchmark that hangs says where.
const stepTimeout = 10 * time.Minute

// runSteps runs them in order and stops at the first error. When the budget is used up, spare steps are left out; zero
// is no budget.
func runSteps(ctx context.Context, to streams, steps []step, budget time.Duration) error {
	p := newProgress(to, steps)
	defer p.end()
	for _, s := range steps {
		if s.spare && budget > 0 && time.Since(p.began) > budget {
			p.done += s.weight
			continue
		}
		p.show(s.name)
		telling := context.WithValue(ctx, tellKey{}, func(what string) { p.show(s.name + ": " + what) })
		if err := runStep(telling, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		p.done += s.weight
	}
	return nil
}

func runStep(ctx context.Context, s step) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("took longer than %s", stepTimeout))
	defer cancel()
	return s.run(ctx)
}

type tellKey struct{}

// tell says what a long step is at.
func tell(ctx context.Context, format string, args ...any) {
	if show, ok := ctx.Value(tellKey{}).(func(string)); ok {
		show(fmt.Sprintf(format, args...))
	}
}

// progress is a bar on a terminal and a line per step elsewhere.
type progress struct {
	out         io.Writer
	terminal    bool
	began       time.Time
	total, done float64
}

func newProgress(to streams, steps []step) *progress {
	p := &progress{out: to.err, terminal: to.terminal, began: time.Now()}
	for _, s := range steps {
		p.total += s.weight
	}
	return p
}

const barWidth = 30

func (p *progress) show(name string) {
	share := 0.0
	if p.total > 0 {
		share = min(p.done/p.total, 1)
	}
	took := time.Since(p.began).Round(time.Second)
	if !p.terminal {
		_, _ = fmt.Fprintf(p.out, "%3.0f %% %6s  %s\n", 100*share, took, name)
		return
	}
	filled := int(share * barWidth)
	bar := strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
	_, _ = fmt.Fprintf(p.out, "\r%s %3.0f %% %6s  %s\x1b[K", bar, 100*share, took, name)
}

// end takes the bar away: the table follows.
func (p *progress) end() {
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
