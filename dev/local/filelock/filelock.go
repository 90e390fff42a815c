// Package filelock keeps a folder to one process at a time. The kernel releases the lock when the process ends,
// however it ends, so no lock is ever stale.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HeldError says that another process has the lock.
type HeldError struct {
	Path string
	PID  int // 0 when the holder has not written it yet
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %s: held by process %d", e.Path, e.PID)
}

// Lock is a held lock.
type Lock struct{ file *os.File }

// Take takes the lock or returns a [HeldError] at once. The file is made if need be, holds the process id, and stays
// when the lock is released: removing it would let two processes lock two files of one name.
func Take(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		held := error(&HeldError{Path: path, PID: holder(path)})
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			held = fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, errors.Join(held, file.Close())
	}
	if err := note(file); err != nil {
		return nil, errors.Join(fmt.Errorf("note process in lock: %w", err), file.Close())
	}
	return &Lock{file: file}, nil
}

const poll = 50 * time.Millisecond

// Await is [Take] that waits for the lock until the context ends.
func Await(ctx context.Context, path string) (*Lock, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		lock, err := Take(path)
		if _, held := errors.AsType[*HeldError](err); !held {
			return lock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("await %w: %w", err, context.Cause(ctx))
		}
	}
}

// Release gives the lock back. Closing the file would not be enough: a child that another goroutine is just starting
// has the file open, too, until it becomes its own program.
func (l *Lock) Release() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

func note(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}
