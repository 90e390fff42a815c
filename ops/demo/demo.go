// Package demo shows a running system at work: it makes events at a steady rate, breaks what it is told to break
// meanwhile, draws the flow, and ends with the verdict of all services on what became of every event.
package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/twinbox/ops/admin/client"
)

// Config is a demonstration.
type Config struct {
	// Services are asked for figures, and for the verdict.
	Services []*client.Service
	// Act does the nth thing that makes an event, and returns the id of what it made. The same n again must change
	// nothing and return the same id. It is repeated until it succeeds or returns a [FinalError].
	Act func(ctx context.Context, n int) (id string, err error)
	// Acted is what was done then, such as "signed up".
	Acted string
	// Arrived says whether what was made has come out at the other end.
	Arrived func(ctx context.Context, id string) (bool, error)
	// Faults are caused one after the other, at even distances.
	Faults []Fault
	// Rate is how many things are done a second, at most MaxRate, For how long.
	Rate float64
	For  time.Duration
	// Settle is how long it may take until nothing waits any more. Default 1 min.
	Settle time.Duration
	Screen Screen
}

// A Fault is something that goes wrong.
type Fault struct {
	Name string // such as "kill customer"
	What string // in a sentence's middle: "kill -9, and another process takes its place"
	// Cause causes it, waits until it is over, and says what came of it.
	Cause func(ctx context.Context, run *Run) (string, error)
}

// A FinalError says that an [Config.Act] will not succeed however often it is repeated.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }
func (e *FinalError) Unwrap() error { return e.Err }

// Run is a demonstration under way.
type Run struct {
	cfg     Config
	began   time.Time
	crowd   *crowd
	figures *figures
	screen  *screen
}

// MaxRate is more than a person can look at.
const MaxRate = 1000

const defaultSettle = time.Minute

// Play runs the demonstration. It returns nil when everything that was made has arrived, and all services say that
// nothing is lost, doubled, altered, invented or reordered. When ctx ends it stops making events, and judges those that
// it has made.
func Play(ctx context.Context, cfg Config) error {
	if cfg.Settle == 0 {
		cfg.Settle = defaultSettle
	}
	r := &Run{cfg: cfg, began: time.Now(), figures: newFigures(cfg.Services), screen: newScreen(cfg)}
	r.crowd = newCrowd(cfg)
	if err := r.figures.begin(ctx); err != nil {
		return fmt.Errorf("look at the system: %w", err)
	}
	whole, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	loading, loaded := context.WithTimeout(ctx, cfg.For)
	defer loaded()
	var looking sync.WaitGroup
	looking.Go(func() { r.look(whole) })
	var faults sync.WaitGroup
	var failed error
	faults.Go(func() { failed = r.causeAll(ctx) })
	r.crowd.run(loading, whole, cfg.Settle)
	faults.Wait()
	err := errors.Join(failed, r.crowd.failure())
	if err == nil {
		err = r.settle(whole)
	}
	stop()
	looking.Wait()
	if err != nil {
		r.show(true)
		return err
	}
	return r.judge(context.WithoutCancel(ctx))
}

// causeAll causes the faults at even distances.
func (r *Run) causeAll(ctx context.Context) error {
	for i, f := range r.cfg.Faults {
		at := r.began.Add(r.cfg.For * time.Duration(i+1) / time.Duration(len(r.cfg.Faults)+1))
		if !pause(ctx, time.Until(at)) {
			return nil
		}
		r.say("%-18s %s", f.Name, f.What)
		r.figures.look(ctx) // a process that is killed takes its counters with it
		came, err := f.Cause(ctx, r)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		r.say("%-18s %s", "", came)
	}
	return nil
}

// lookEvery is how often the figures are read and drawn.
const lookEvery = 250 * time.Millisecond

func (r *Run) look(ctx context.Context) {
	for {
		r.figures.look(ctx)
		r.show(false)
		if !pause(ctx, lookEvery) {
			return
		}
	}
}

// settledFor is longer than a figure may be old.
const settledFor = 1500 * time.Millisecond

// settle waits until nothing waits in the system, and has not for so long that what is seen is true.
func (r *Run) settle(ctx context.Context) error {
	end := time.Now().Add(r.cfg.Settle)
	for {
		seen := r.figures.now()
		if seen.idle() >= settledFor {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s there is still something that waits: %s", r.cfg.Settle, seen.standing())
		}
		pause(ctx, lookEvery)
	}
}

// pause reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
