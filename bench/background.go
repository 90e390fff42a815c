package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

var errEndedEarly = errors.New("a program of the measurement ended early")

// If run ends first, alongside cuts do short. A program that does not stop is an error.
func alongside(ctx context.Context, run, do func(context.Context) error) error {
	runCtx, end := context.WithCancel(ctx)
	defer end()
	doCtx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	ended := make(chan error, 1)
	go func() {
		err := run(runCtx)
		if runCtx.Err() == nil {
			err = errors.Join(errEndedEarly, err)
			cut(err)
		}
		ended <- err
	}()
	err := do(doCtx)
	end()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case endErr := <-ended:
		return errors.Join(err, endErr)
	case <-timer.C:
		return errors.Join(err, fmt.Errorf("a program of the measurement did not stop within %s", stopTimeout))
	}
}

// together runs all until one fails or ctx ends.
func together(runs ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range runs {
			group.Go(func() error { return run(ctx) })
		}
		return group.Wait()
	}
}

// Close after its start is a router's only way to stop that does not race with the start.
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
