package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// background is a function that runs beside the measurement and is waited for.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func inBackground(ctx context.Context, run func(context.Context) error) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = run(ctx)
	}()
	return b
}

var errEndedEarly = errors.New("what runs beside the measurement ended by itself")

// during runs do, which is cut short if the background ends first.
func (b *background) during(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-b.done:
			cancel(errors.Join(errEndedEarly, b.err))
		case <-stop:
		}
	}()
	return do(ctx)
}

// stop ends it, waits and returns its error. What does not stop is an error, not a benchmark that hangs.
func (b *background) stop() error {
	b.cancel()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-b.done:
		return b.err
	case <-timer.C:
		return fmt.Errorf("what runs beside the measurement did not stop within %s", stopTimeout)
	}
}

// runRouter runs one of Watermill's routers until ctx ends. It has one way to stop that does not race with its start:
// Close, once it runs. So ctx is kept from it.
func runRouter(
	ctx context.Context, run func(context.Context) error, running <-chan struct{}, closeIt func() error,
) error {
	done := make(chan error, 1)
	go func() { done <- run(context.WithoutCancel(ctx)) }()
	select {
	case <-running:
	case err := <-done:
		return err
	}
	select {
	case <-ctx.Done():
		err := closeIt() // and the subscriber with it
		return errors.Join(err, <-done)
	case err := <-done:
		return errors.Join(errEndedEarly, err)
	}
}
