package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"example.com/twinbox/dev/local/postgres"
)

const folderPrefix = "twinbox-cluster-"

// memory is a file system in memory, and roomy is how much of it has to be free. A new database is 300 small files, and
// dropping it flushes them: on a disk that is ten times slower.
const (
	memory = "/dev/shm"
	roomy  = 4 << 30
)

// places returns the folder for servers: in memory where there is room, unless TMPDIR has a different one.
func places() string {
	var found syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(memory, &found) == nil && found.Bavail*uint64(found.Bsize) > roomy {
		return memory
	}
	return os.TempDir()
}

// newFolder makes the folder of one server.
func newFolder(place string) (string, error) {
	sweep(place)
	folder, err := os.MkdirTemp(place, folderPrefix)
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o711) // the server may run as another account than root, and must pass through
}

func dataIn(folder string) string { return filepath.Join(folder, "data") }

func removeFolder(folder string) error {
	return errors.Join(postgres.Remove(dataIn(folder)), os.RemoveAll(folder))
}

// keepFolder moves the folder to a place that the next failing run of the same tests takes over, so that at most one
// per package is left.
func keepFolder(folder string, databases []string) error {
	name := fmt.Sprintf("twinbox-kept-%d-%s", os.Geteuid(), filepath.Base(os.Args[0]))
	place := filepath.Join(filepath.Dir(folder), name)
	if err := errors.Join(os.RemoveAll(place), os.Rename(folder, place)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "pgtest: kept %v in %s; to look: postgres -D %s/data -k %s, then psql -h %s -U %s\n",
		databases, place, place, place, place, postgres.Superuser)
	return nil
}

// sweepAfter is longer than any test binary runs.
const sweepAfter = 2 * time.Hour

// sweep removes the folders of test binaries that were killed, by a test timeout for one. A folder that it cannot
// remove, of another user for example, stays.
func sweep(place string) {
	folders, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*")) // the pattern is well-formed
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > sweepAfter {
			_ = removeFolder(folder)
		}
	}
}
