// Package localtest has helpers for tests of a stack and of its PostgreSQL.
package localtest

import (
	"os"
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
