package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ErrOrphaned is the cause of the context's end when the tool that started this program is gone.
var ErrOrphaned = errors.New("the tool that started this program has ended")

const parentPoll = 500 * time.Millisecond

// WithTool returns a context that ends when the tool that started this program is gone: make, when byMake says so, or
// the go tool. Both pass on Ctrl-C, but one that is killed leaves the program running. Without such a tool it returns
// ctx. Call stop when done.
func WithTool(ctx context.Context, byMake bool) (_ context.Context, stop func()) {
	path, err := os.Executable()
	if !byMake && (err != nil || !builtByGoRun(path)) {
		return ctx, func() {}
	}
	return withParent(ctx, os.Getppid(), os.Getppid, parentPoll)
}

// builtByGoRun recognises where "go run" leaves a program: in a temporary folder, .../go-build123/b001/exe/name, or in
// the build cache, .../5e/5e...-d/name.
func builtByGoRun(path string) bool {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "exe" {
		return strings.Contains(dir, string(filepath.Separator)+"go-build")
	}
	return cached.MatchString(filepath.ToSlash(dir))
}

// cached is a folder of the build cache: 64 hexadecimal digits, in one that is named after the first two.
var cached = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d$`)

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
