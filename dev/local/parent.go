package local

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
)

var errOrphaned = errors.New("the program that started this one has ended")

const parentPoll = 500 * time.Millisecond

// WithParent returns a context that ends when the program that started this one is gone. Call stop when done.
func WithParent(ctx context.Context) (_ context.Context, stop func()) {
	return withParent(ctx, os.Getppid, parentPoll)
}

func withParent(ctx context.Context, getppid func() int, every time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := getppid()
	var watching sync.WaitGroup
	watching.Go(func() {
		for failure.Sleep(ctx, every) == nil {
			if getppid() != parent {
				cancel(errOrphaned)
			}
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		watching.Wait()
	}
}
