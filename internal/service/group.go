package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Group runs the tasks of a process and stops them one after the other, the last one first. A task that fails, panics
// or ends early stops the others in the same way.
type Group struct {
	ctx   context.Context //nolint:containedctx // of the whole group, not of a call
	fail  context.CancelCauseFunc
	log   *slog.Logger
	drain time.Duration

	mu      sync.Mutex
	tasks   []*task
	stopped bool
}

type task struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error // read after done is closed
}

// NewGroup returns a group that stops when ctx is cancelled. After drain, by default 20 s, it cancels all tasks, and a
// second later Wait names those that still run.
func NewGroup(ctx context.Context, log *slog.Logger, drain time.Duration) *Group {
	ctx, fail := context.WithCancelCause(ctx)
	return &Group{ctx: ctx, fail: fail, log: log, drain: cmp.Or(drain, 20*time.Second)}
}

var (
	errEndedEarly = errors.New("ended before it was asked to")
	errTaskFailed = errors.New("a task failed")
)

// Go starts a task, unless the stop has begun. It must run until its context is cancelled, then return nil or
// context.Canceled.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(g.ctx))
	t := &task{name: name, stop: stop, done: make(chan struct{})}
	g.tasks = append(g.tasks, t)
	go func() {
		defer close(t.done)
		err := runProtected(ctx, run)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		t.err = fmt.Errorf("%s: %w", name, cmp.Or(err, errEndedEarly))
		attrs := []any{"task", name, "error", t.err}
		if panicked, is := errors.AsType[*panicError](err); is {
			attrs = append(attrs, "stack", panicked.stack)
		}
		g.log.Error("task failed", attrs...)
		g.fail(errTaskFailed)
	}()
}

// OnStop registers a stop, such as closing a pool.
func (g *Group) OnStop(name string, stop func() error) {
	g.Go(name, func(ctx context.Context) error {
		<-ctx.Done()
		return stop()
	})
}

// Context ends when the stop begins.
func (g *Group) Context() context.Context { return g.ctx }

const lastGrace = time.Second

// Wait blocks until the group's context is cancelled or a task fails. It stops the tasks and returns their errors. A
// task that does not stop is an error. Call Wait once.
func (g *Group) Wait() error {
	<-g.ctx.Done()
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.log.Info("stopping", "reason", context.Cause(g.ctx).Error(), "timeout", g.drain)
	began := time.Now()
	patience, cancel := context.WithTimeout(context.Background(), g.drain)
	defer cancel()
	for _, t := range slices.Backward(g.tasks) {
		t.stop() // after the drain timeout, with those before it
		t.await(patience)
	}
	grace, cancel := context.WithTimeout(context.Background(), lastGrace)
	defer cancel()
	var errs []error
	var running []string
	for _, t := range g.tasks {
		if t.await(grace) {
			errs = append(errs, t.err)
		} else {
			running = append(running, t.name)
		}
	}
	if len(running) > 0 {
		errs = append(errs, fmt.Errorf("stop: still running after %s: %s", g.drain, strings.Join(running, ", ")))
	}
	g.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond), "still_running", len(running))
	return errors.Join(errs...)
}

func (t *task) await(ctx context.Context) bool {
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	select { // both may have come
	case <-t.done:
		return true
	default:
		return false
	}
}

type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// runProtected returns a panic of run as its error.
func runProtected(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, string(debug.Stack())}
		}
	}()
	return run(ctx)
}
