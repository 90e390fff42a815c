// Package filelock keeps a folder to one process at a time. The kernel releases the lock with the process.
package filelock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// HeldError reports that a different process has the lock.
type HeldError struct {
	Path string
	PID  int // 0 when the holder has not written it yet
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s already runs on %s: stop it, or take another folder", e.Holder(), filepath.Dir(e.Path))
}

// Holder names the process, with its id if that is known.
func (e *HeldError) Holder() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", e.PID)
}

type Lock struct{ file *flock.Flock }

// Take returns a [HeldError] without waiting. The file holds the process id and stays after the release: removing it
// would let two processes lock two files of one name.
func Take(path string) (*Lock, error) {
	lock := &Lock{flock.New(path, flock.SetPermissions(0o644))}
	taken, err := lock.file.TryLock()
	if err == nil && !taken {
		return nil, &HeldError{Path: path, PID: holder(path)}
	}
	return lock.noted(err)
}

const poll = 50 * time.Millisecond

// Await waits for the lock until the context ends.
func Await(ctx context.Context, path string) (*Lock, error) {
	lock := &Lock{flock.New(path, flock.SetPermissions(0o644))}
	_, err := lock.file.TryLockContext(ctx, poll)
	return lock.noted(err)
}

func (l *Lock) noted(err error) (*Lock, error) {
	if err == nil {
		err = os.WriteFile(l.file.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	}
	if err != nil {
		_ = l.Release()
		return nil, fmt.Errorf("lock %s: %w", l.file.Path(), err)
	}
	return l, nil
}

func (l *Lock) Release() error { return l.file.Unlock() }

func holder(path string) int {
	content, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	return pid
}
