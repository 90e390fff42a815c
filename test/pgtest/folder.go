package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/twinbox/dev/local/filelock"
	"example.com/twinbox/dev/local/postgres"
)

const folderPrefix = "twinbox-pgtest-"

// folder is where one server lives. It is locked for as long as this process lives.
type folder struct {
	path string
	lock *filelock.Lock
}

func newFolder(place string) (*folder, error) {
	sweep(place)
	path, err := os.MkdirTemp(place, folderPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(path, "lock"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	f := &folder{path: path, lock: lock}
	// The server may run as another account than root's: it must be able to pass through.
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (f *folder) data() string { return filepath.Join(f.path, "data") }

func (f *folder) remove() error {
	return errors.Join(postgres.Remove(f.data()), os.RemoveAll(f.path), f.lock.Release())
}

// keep moves the folder to a place that the next failing run of the same tests takes over, so that at most one per
// package is left on the disk.
func (f *folder) keep(databases []string) error {
	name := fmt.Sprintf("twinbox-kept-%d-%s", os.Geteuid(), filepath.Base(os.Args[0]))
	place := filepath.Join(os.TempDir(), name)
	if err := errors.Join(os.RemoveAll(place), os.Rename(f.path, place), f.lock.Release()); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "pgtest: kept %v in %s; to look: postgres -D %s/data -k %s, then psql -h %s -U %s\n",
		databases, place, place, place, place, postgres.Superuser)
	return nil
}

// sweepAfter is the age from which a folder without a lock is litter; a younger one may be about to be locked.
const sweepAfter = time.Minute

// sweep removes what test binaries have left that were killed, by a test timeout for one. It is a courtesy: what
// cannot be removed, another user's folder for example, stays.
func sweep(place string) {
	left, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*")) // the pattern is well-formed
	for _, path := range left {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < sweepAfter {
			continue
		}
		if lock, err := filelock.Take(filepath.Join(path, "lock")); err == nil {
			_ = (&folder{path: path, lock: lock}).remove()
		}
	}
}
