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

func IsRunning(dir string) bool {
	pid, _ := readPostmaster(dir)
	return pid > 0 && isAlive(pid)
}

// readPostmaster reads a server's file: line 1 is its process id, line 8 its state. The id is 0 without a file.
func readPostmaster(dir string) (pid int, isStopping bool) {
	lines := postmasterLines(dir)
	pid, err := strconv.Atoi(lines[0])
	if err != nil || pid < 0 {
		return 0, false
	}
	return pid, lines[7] == "stopping"
}

// readSharedMemory reads line 7: a key, and the id of the server's shared memory.
func readSharedMemory(dir string) (id int, is bool) {
	fields := strings.Fields(postmasterLines(dir)[6])
	if len(fields) != 2 {
		return 0, false
	}
	id, err := strconv.Atoi(fields[1])
	return id, err == nil
}

func postmasterLines(dir string) (lines [8]string) {
	content, _ := os.ReadFile(postmasterFile(dir))
	for i, line := range strings.SplitN(string(content), "\n", len(lines)+1) {
		if i < len(lines) {
			lines[i] = strings.TrimSpace(line)
		}
	}
	return lines
}
