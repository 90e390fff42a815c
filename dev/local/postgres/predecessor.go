package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/failure"
)

// predecessorGrace is how long a server may stay "ready" before it counts as in use: the kernel's signal for a killed
// program may still be on its way.
const predecessorGrace = 5 * time.Second

// awaitPredecessor waits for the shutdown of a killed program's server.
func awaitPredecessor(ctx context.Context, dir string) error {
	for began := time.Now(); ; {
		pid, isStopping := readPostmaster(dir)
		switch {
		case pid == 0 || !isAlive(pid):
			return nil // PostgreSQL clears the file of a server that is gone
		case !isServer(pid, dir):
			// After a reboot a different process may have the id, which PostgreSQL takes for the server.
			if err := os.Remove(postmasterFile(dir)); err != nil {
				return fmt.Errorf("clear the file of a server that is gone: %w", err)
			}
			return nil
		case !isStopping && time.Since(began) > predecessorGrace:
			return fmt.Errorf("%w: process %d", ErrInUse, pid)
		}
		if err := failure.Sleep(ctx, readyPoll); err != nil {
			return fmt.Errorf("await the end of process %d on the data directory: %w", pid, err)
		}
	}
}

func postmasterFile(dir string) string { return filepath.Join(dir, "postmaster.pid") }

// IsRunning reports whether a server works on a data folder.
func IsRunning(dir string) bool {
	pid, _ := readPostmaster(dir)
	return pid > 0 && isAlive(pid)
}

// readPostmaster reads a server's file: line 1 is its process id, line 8 its state. The id is 0 without a file.
func readPostmaster(dir string) (pid int, isStopping bool) {
	content, _ := os.ReadFile(postmasterFile(dir))
	lines := strings.Split(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid < 0 {
		return 0, false
	}
	const stateLine = 7
	return pid, len(lines) > stateLine && strings.TrimSpace(lines[stateLine]) == "stopping"
}

// readSharedMemory reads line 7 of a server's file: a key, and the id of its shared memory.
func readSharedMemory(dir string) (id int, is bool) {
	content, _ := os.ReadFile(postmasterFile(dir))
	lines := strings.Split(string(content), "\n")
	const memoryLine = 6
	if len(lines) <= memoryLine {
		return 0, false
	}
	fields := strings.Fields(lines[memoryLine])
	if len(fields) != 2 {
		return 0, false
	}
	id, err := strconv.Atoi(fields[1])
	return id, err == nil
}
