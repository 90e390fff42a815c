// Package filelock keeps a folder to one process at a time. The kernel releases the lock with the process.
package filelock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// ErrHeld means that a different process has the lock.
var ErrHeld = errors.New("folder in use")

// Take returns [ErrHeld] without waiting. The file holds the process id and stays after the unlock: removing it would
// let two processes lock two files of one name.
func Take(path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetPermissions(0o644))
	taken, err := lock.TryLock()
	if err == nil && !taken {
		holder, _ := os.ReadFile(path) // empty before the holder has written its id
		return nil, fmt.Errorf("%w: process %s runs on %s; stop it, or take another folder", ErrHeld,
			cmp.Or(strings.TrimSpace(string(holder)), "(unknown)"), filepath.Dir(path))
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	}
	if err != nil {
		_ = lock.Unlock()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return lock, nil
}
