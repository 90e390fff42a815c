package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
)

// ErrOrphaned is the cause of the context's end when that tool is gone.
var ErrOrphaned = errors.New("the tool that started this program has ended")

const parentPoll = 500 * time.Millisecond

// WithTool returns a context that ends when the tool that started this program is gone: make, if byMake is set, or the
// go tool. Without such a tool it returns ctx. Call stop when done.
func WithTool(ctx context.Context, byMake bool) (_ context.Context, stop func()) {
	path, err := os.Executable()
	if !byMake && (err != nil || !isBuiltByGoRun(path)) {
		return ctx, func() {}
	}
	return withParent(ctx, os.Getppid, parentPoll)
}

// isBuiltByGoRun knows both places of "go run": .../go-build123/b001/exe/name, or the build cache, .../5e/5e...-d/name.
func isBuiltByGoRun(path string) bool {
	dir := filepath.ToSlash(filepath.Dir(path))
	return strings.Contains(dir, "/go-build") && strings.HasSuffix(dir, "/exe") || cached.MatchString(dir)
}

var cached = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d$`)

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
