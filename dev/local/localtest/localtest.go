// Package localtest has helpers for tests of a stack and of its PostgreSQL.
package localtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Folder returns a folder that every account may pass through, removed with the test. Root's server cannot enter a
// test's own, whose path may be too long for a socket.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "twinbox-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// Patient returns settings under which a slow machine loses no lease, repeats no batch or mail, and logs no warning.
func Patient() []string {
	return []string{
		"OUTBOX_LEASE=40s", "KAFKA_PUBLISH_TIMEOUT=20s", "KAFKA_SESSION_TIMEOUT=1m", "SMTP_TIMEOUT=15s",
	}
}

// Postmaster returns the process id of the server on a data directory.
func Postmaster(t testing.TB, data string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	return pid
}

// Gone reports whether a process has ended. Without an init process it stays as a zombie.
func Gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
