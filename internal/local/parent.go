package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrOrphaned is the cause of the context's end when the go tool that started this program is gone.
var ErrOrphaned = errors.New("the go tool that started this program has ended")

const parentPoll = 500 * time.Millisecond

// WithGoRun returns a context that ends when this program was started by "go run" and the go tool is gone: it passes
// on Ctrl-C, but a go tool that is killed leaves the program running with nobody to stop it. Call stop when done.
func WithGoRun(ctx context.Context) (_ context.Context, stop func()) {
	path, err := os.Executable()
	if err != nil || !builtByGoRun(path) {
		return ctx, func() {}
	}
	return withParent(ctx, os.Getppid(), os.Getppid, parentPoll)
}

// builtByGoRun recognises the temporary folder that "go run" builds in: .../go-build123/b001/exe/name.
func builtByGoRun(path string) bool {
	dir := filepath.Dir(path)
	return filepath.Base(dir) == "exe" && strings.Contains(dir, string(filepath.Separator)+"go-build")
}

// withParent ends the context when the parent is not the one it was. Polling is all that works on every system.
func withParent(
	ctx context.Context, parent int, getppid func() int, every time.Duration,
) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if getppid() != parent {
					cancel(ErrOrphaned)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
	}
}
