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

// A new database is 300 small files. memory holds them if roomy bytes are free: a disk takes ten times as long to flush
// them.
const (
	memory = "/dev/shm"
	roomy  = 4 << 30
)

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

// keepFolder replaces the folder of the last failing run.
func keepFolder(folder string, databases []string) error {
	name := fmt.Sprintf("twinbox-kept-%d-%s", os.Geteuid(), filepath.Base(os.Args[0]))
	place := filepath.Join(filepath.Dir(folder), name)
	if err := errors.Join(os.RemoveAll(place), os.Rename(folder, place)); err != nil {
		return err
	}
	command := "postgres"
	if os.Geteuid() == 0 {
		command = "unshare -U postgres" // the server refuses root
	}
	fmt.Fprintf(os.Stderr, "pgtest: kept %v in %s; to look: %s -D %s/data -k %s, then psql -h %s -U %s\n",
		databases, place, command, place, place, place, postgres.Superuser)
	return nil
}

const sweepAfter = 2 * time.Hour

// sweep removes the folders of killed test binaries, where it can.
func sweep(place string) {
	folders, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*"))
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err == nil && time.Since(info.ModTime()) > sweepAfter && !postgres.IsRunning(dataIn(folder)) {
			_ = removeFolder(folder)
		}
	}
}
