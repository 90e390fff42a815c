package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	parent context.Context
	log    *slog.Logger
	drain  time.Duration

	draining chan struct{}
	failed   chan struct{}
	failOnce sync.Once

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
	return &Group{
		parent:   ctx,
		log:      log,
		drain:    drain,
		draining: make(chan struct{}),
		failed:   make(chan struct{}),
	}
}

// Go starts a task. It must run until its context is cancelled, then finish what it is at and return; nil and
// context.Canceled are then clean. Its context carries the values of the group's, but is cancelled only when it is the
// task's turn. After the stop has begun Go does nothing.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(g.parent))
	t := &task{name: name, ctx: ctx, stop: stop, done: make(chan struct{})}
	g.tasks = append(g.tasks, t)
	go func() {
		t.run(run)
		if t.err != nil {
			g.report(t)
			g.failOnce.Do(func() { close(g.failed) })
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

// Failed is closed when a task has failed. Code that waits for something before [Group.Wait] gives up on it then.
func (g *Group) Failed() <-chan struct{} { return g.failed }

// Wait blocks until the group's context is cancelled or a task fails, stops the tasks and returns what went wrong, each
// error with its task's name. It is nil after a clean stop. A [*DrainTimeoutError] is among the errors when a task did
// not stop; its goroutine then still runs, and the process should end. Call Wait once, always.
func (g *Group) Wait() error {
	reason := "a task failed"
	select {
	case <-g.parent.Done():
		reason = context.Cause(g.parent).Error()
	case <-g.failed:
	}
	g.mu.Lock()
	g.stopped = true
	tasks := g.tasks
	g.mu.Unlock()
	close(g.draining)
	g.log.Info("stopping", "reason", reason, "timeout", g.drain)
	began := time.Now()
	running := g.stop(tasks)

	var errs []error
	for _, t := range tasks {
		if t.ended() {
			errs = append(errs, t.err)
		}
	}
	if len(running) > 0 {
		errs = append(errs, &DrainTimeoutError{After: g.drain, Running: running})
	}
	g.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond), "still_running", len(running))
	return errors.Join(errs...)
}

// stop ends the tasks one after the other and returns the names of those that did not end.
func (g *Group) stop(tasks []*task) []string {
	timeout := time.NewTimer(g.drain)
	defer timeout.Stop()
	for i, t := range slices.Backward(tasks) {
		t.stop()
		select {
		case <-t.done:
			g.log.Debug("task stopped", "task", t.name)
		case <-timeout.C:
			return hurry(tasks[:i+1])
		}
	}
	return nil
}

// hurry stops all tasks at once and returns the names of those that have not ended after the last grace.
func hurry(tasks []*task) []string {
	for _, t := range tasks {
		t.stop()
	}
	grace := time.NewTimer(lastGrace)
	defer grace.Stop()
	for _, t := range tasks {
		select {
		case <-t.done:
			continue
		case <-grace.C:
		}
		break
	}
	var running []string
	for _, t := range tasks {
		if !t.ended() {
			running = append(running, t.name)
		}
	}
	return running
}

func (g *Group) report(t *task) {
	if panicked, ok := errors.AsType[*PanicError](t.err); ok {
		g.log.Error("task panicked", "task", t.name, "error", t.err, "stack", string(panicked.Stack))
		return
	}
	g.log.Error("task failed", "task", t.name, "error", t.err)
}

// A DrainTimeoutError names the tasks that did not stop in time.
type DrainTimeoutError struct {
	After   time.Duration
	Running []string
}

func (e *DrainTimeoutError) Error() string {
	return fmt.Sprintf("stop: still running after %s: %s", e.After, strings.Join(e.Running, ", "))
}
