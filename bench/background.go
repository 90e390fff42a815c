package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
)

var errEndedEarly = errors.New("a program of the measurement ended early")

// alongside ends run when do ends; if run ends first, it cancels do. A run that does not stop is an error: the
// benchmark must not hang.
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
	select {
	case endErr := <-ended:
		return errors.Join(err, endErr)
	case <-time.After(stopTimeout):
		return errors.Join(err, fmt.Errorf("a program of the measurement did not stop within %s", stopTimeout))
	}
}

func together(ctx context.Context, runs ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range runs {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

func poll(ctx context.Context, every time.Duration, isDone func() (bool, error)) error {
	for {
		if done, err := isDone(); done || err != nil {
			return err
		}
		if err := failure.Sleep(ctx, every); err != nil {
			return err
		}
	}
}

// Close after its start is the router's only way to stop without a race, so it gets a context without an end.
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
		err := closeIt()
		return errors.Join(err, <-done)
	case err := <-done:
		return errors.Join(errEndedEarly, err)
	}
}
