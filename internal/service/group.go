package service

import (
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

// lastGrace is what tasks get after the drain timeout, when all of them have been told to stop at once.
const lastGrace = time.Second

// A Group runs the tasks of a process and stops them in order: the one started last stops first, and only when it has
// returned is the one before it told to stop, like deferred calls. So start what others need first:
//
//	pools (OnStop), admin listener, relay, mail sender, consumers, HTTP server
//
// and on a signal no new request comes in, then no new record, then the sender finishes its mail, then the relay
// passes on what all of them wrote, and the pools close last. Readiness is false from the start of that on
// ([Group.Draining]).
//
// The first task that fails, panics or ends early stops the others in the same way.
type Group struct {
	ctx   context.Context //nolint:containedctx // of the whole group, not of a call
	fail  context.CancelCauseFunc
	log   *slog.Logger
	drain time.Duration

	draining chan struct{}

	mu      sync.Mutex
	tasks   []*task
	stopped bool
}

// NewGroup returns a group that stops when ctx is cancelled. Stopping all tasks may take drain; then they are told to
// stop all at once, and a second later Wait names those that still run. A drain of zero or less means 20 seconds.
func NewGroup(ctx context.Context, log *slog.Logger, drain time.Duration) *Group {
	if drain <= 0 {
		drain = 20 * time.Second
	}
	ctx, fail := context.WithCancelCause(ctx)
	return &Group{ctx: ctx, fail: fail, log: log, drain: drain, draining: make(chan struct{})}
}

var errTaskFailed = errors.New("a task failed")

// Go starts a task. It must run until its context is cancelled, then finish what it is at and return; nil and
// context.Canceled are then clean. Its context carries the values of the group's, but is cancelled only when it is the
// task's turn. After the stop has begun Go does nothing.
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
		if t.run(ctx, g.log, run); t.err != nil {
			g.fail(errTaskFailed)
		}
	}()
}

// OnStop registers what is done when it is its turn: closing a pool, flushing an exporter.
func (g *Group) OnStop(name string, stop func() error) {
	g.Go(name, func(ctx context.Context) error {
		<-ctx.Done()
		return stop()
	})
}

// Draining is closed when the stop begins.
func (g *Group) Draining() <-chan struct{} { return g.draining }

// Context ends when a task has failed, or with the group's own. It is for what waits for something before [Group.Wait].
func (g *Group) Context() context.Context { return g.ctx }

// Wait blocks until the group's context is cancelled or a task fails, stops the tasks and returns what went wrong, each
// error with its task's name. It is nil after a clean stop. When a task did not stop, an error names it; its goroutine
// then still runs, and the process should end. Call Wait once, always.
func (g *Group) Wait() error {
	<-g.ctx.Done()
	g.mu.Lock()
	g.stopped = true
	tasks := g.tasks
	g.mu.Unlock()
	close(g.draining)
	g.log.Info("stopping", "reason", context.Cause(g.ctx).Error(), "timeout", g.drain)
	began := time.Now()
	patience, cancel := context.WithTimeout(context.Background(), g.drain)
	defer cancel()
	for _, t := range slices.Backward(tasks) {
		t.stop() // those before it too, once the patience is over
		if t.endedBefore(patience) {
			g.log.Debug("task stopped", "task", t.name)
		}
	}

	grace, cancel := context.WithTimeout(context.Background(), lastGrace)
	defer cancel()
	var errs []error
	var running []string
	for _, t := range tasks {
		if t.endedBefore(grace) {
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

// ErrEndedEarly is the failure of a task that returned nil before the group stopped it. A consumer that ends
// quietly would otherwise leave a process that is healthy and does nothing.
var ErrEndedEarly = errors.New("ended before it was asked to")

// task is one goroutine of a group. err is written before done is closed and read after.
type task struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// run runs the task to its end and judges how it ended.
func (t *task) run(ctx context.Context, log *slog.Logger, run func(ctx context.Context) error) {
	defer close(t.done)
	err := protect(ctx, run)
	if asked := ctx.Err() != nil; asked && (err == nil || errors.Is(err, context.Canceled)) {
		return
	}
	if err == nil {
		err = ErrEndedEarly
	}
	t.err = fmt.Errorf("%s: %w", t.name, err)
	if panicked, is := errors.AsType[*PanicError](err); is {
		log.Error("task panicked", "task", t.name, "error", t.err, "stack", string(panicked.Stack))
	} else {
		log.Error("task failed", "task", t.name, "error", t.err)
	}
}

// endedBefore waits for the task's end, or the context's.
func (t *task) endedBefore(ctx context.Context) bool {
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

// A PanicError is a panic of a task.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func protect(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return run(ctx)
}
