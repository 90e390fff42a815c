package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/twinbox/dev/local/postgres/binaries"
)

// chooseBinaries finds programs that fit the data directory: one that exists is served by its own major version only.
func chooseBinaries(ctx context.Context, cfg Config) (string, error) {
	opts := binaries.Options{Dir: cfg.BinDir, SkipInstalled: cfg.SkipInstalled, Progress: cfg.Progress}
	if content, err := os.ReadFile(filepath.Join(cfg.Dir, "PG_VERSION")); err == nil {
		opts.Major = strings.TrimSpace(string(content))
	}
	dir, err := binaries.Ensure(ctx, opts)
	if err != nil && ctx.Err() != nil {
		// A search that was broken off is no verdict on what is installed: a program killed while it was asked for its
		// version looks like one that does not work.
		return "", fmt.Errorf("find PostgreSQL: %w", context.Cause(ctx))
	}
	if errors.Is(err, binaries.ErrVersion) && opts.Major != "" {
		err = fmt.Errorf("%w; install PostgreSQL %s, name the folder of its initdb and postgres (PG_BIN), or throw the data "+
			"away (make reset)", err, opts.Major)
	}
	return dir, err
}
