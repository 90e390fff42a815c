package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/twinbox/dev/local/filelock"
)

const fetchTimeout = 5 * time.Minute

// cacheDir is the folder where fetched programs are kept, shared by all checkouts. Root's home is closed to the
// account that a server of root may have to run as, so root's cache is the system's.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/twinbox", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder to keep it in: %w", err)
	}
	return filepath.Join(dir, "twinbox"), nil
}

// fetched gives the folder of the programs in the cache, whether they are there or not.
func fetched(cache string) string {
	return filepath.Join(cache, "postgresql-"+Version+"-"+strings.ReplaceAll(platform(), "/", "-"), "bin")
}

// fetch gives the cached programs, and gets them first when they are not there. Any number of processes may call it
// at once: one fetches, the others wait. What is in place is always complete: it is put there by a rename.
func fetch(ctx context.Context, opts Options) (string, error) {
	bin := fetched(opts.CacheDir)
	if complete(bin) {
		return bin, nil
	}
	b, known := builds[platform()]
	if !known {
		return "", fmt.Errorf("%w (there is nothing to fetch for %s)", notFound(), platform())
	}
	if hasMusl("/") {
		return "", fmt.Errorf("%w (what could be fetched needs glibc, and this system has musl)", notFound())
	}
	if err := os.MkdirAll(opts.CacheDir, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	lock, err := filelock.Await(ctx, filepath.Join(opts.CacheDir, "lock"))
	if err != nil {
		return "", fmt.Errorf("await another fetch: %w", err)
	}
	defer func() { _ = lock.Release() }() // the fetch's outcome does not depend on it
	if complete(bin) {
		return bin, nil
	}
	return bin, tryClients(ctx, b, filepath.Dir(bin), opts)
}

func tryClients(ctx context.Context, b build, place string, opts Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("took longer than %s", fetchTimeout))
	defer cancel()
	problems := []error{notFound()}
	for _, c := range opts.clients {
		if !c.present() {
			continue
		}
		opts.tell("no PostgreSQL of this machine will do: fetching %s with %s (once, about 25 MB)", Version, c.name)
		began := time.Now()
		err := fetchWith(ctx, c, b, place)
		if err == nil {
			opts.tell("PostgreSQL %s is in %s (%s)", Version, place, time.Since(began).Round(100*time.Millisecond))
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("fetch PostgreSQL: %w", context.Cause(ctx))
		}
		opts.tell("fetching with %s did not work", c.name)
		problems = append(problems, fmt.Errorf("fetch with %s: %w", c.name, err))
	}
	return errors.Join(problems...)
}

// fetchWith lets one client fetch beside the final place, tries what came, and moves it there.
func fetchWith(ctx context.Context, c client, b build, place string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(place), "fetching-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	into := filepath.Join(work, "into")
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	if err := c.fetch(ctx, b, work, into); err != nil {
		return err
	}
	if major, err := Major(ctx, filepath.Join(into, "bin")); err != nil || major != fetchedMajor {
		return fmt.Errorf("try what was fetched: version %q, want %s: %w", major, fetchedMajor, err)
	}
	if err := os.RemoveAll(place); err != nil { // incomplete, or complete would have been true
		return err
	}
	return os.Rename(into, place)
}
