package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// predecessorGrace is how long a server may go on saying "ready" before it counts as in use. A program that was
// killed takes its server with it, but a new one may look before the kernel has delivered that signal, and on a busy
// machine before the server has come to run.
const predecessorGrace = 5 * time.Second

// awaitPredecessor lets the server of a program that was just killed finish its shutdown, and tells it from one that
// is in use.
func awaitPredecessor(ctx context.Context, dir string) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	grace := time.After(predecessorGrace)
	for {
		pid, stopping := readPostmaster(dir)
		if pid == 0 || !alive(pid) {
			return nil // PostgreSQL itself clears the file of a server that is gone
		}
		if !serves(pid, dir) {
			return forget(dir)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await the end of process %d on the data directory: %w", pid, context.Cause(ctx))
		case <-grace:
			if !stopping {
				return fmt.Errorf("%w: process %d", ErrInUse, pid)
			}
		case <-tick.C:
		}
	}
}

// forget clears the file of a server that is gone and whose process id belongs to another process by now, as it may
// be after the machine went down. PostgreSQL itself would take that process for the server.
func forget(dir string) error {
	if err := os.Remove(postmasterFile(dir)); err != nil {
		return fmt.Errorf("clear the file of a server that is gone: %w", err)
	}
	return nil
}

func postmasterFile(dir string) string { return filepath.Join(dir, "postmaster.pid") }

// readPostmaster reads what a server leaves in its data directory while it runs: line 1 is its process id, line 8 its
// state. The id is 0 when there is no such file.
func readPostmaster(dir string) (pid int, stopping bool) {
	content, err := os.ReadFile(postmasterFile(dir))
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(content), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return 0, false
	}
	const stateLine = 7
	return pid, len(lines) > stateLine && strings.TrimSpace(lines[stateLine]) == "stopping"
}
