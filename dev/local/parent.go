package local

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
)

// ErrOrphaned is the cause of the context's end when the parent is gone.
var ErrOrphaned = errors.New("the program that started this one has ended")

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
				cancel(ErrOrphaned)
			}
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		watching.Wait()
	}
}
