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

// memory is a file system in memory, and roomy the bytes that have to be free. A new database is 300 small files. To
// flush them on a disk takes ten times as long.
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

// keepFolder replaces the folder of the last failing run, so at most one per package is left.
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

const sweepAfter = 2 * time.Hour

// sweep removes the folders of test binaries that were killed. A folder that it cannot remove stays.
func sweep(place string) {
	folders, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*")) // the pattern is well-formed
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > sweepAfter {
			_ = removeFolder(folder)
		}
	}
}
