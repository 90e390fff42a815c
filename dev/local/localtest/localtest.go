// Package localtest has helpers for tests of a stack and of its PostgreSQL.
package localtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
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
	settings := []string{"OUTBOX_LEASE=40s", "KAFKA_PUBLISH_TIMEOUT=20s", "KAFKA_SESSION_TIMEOUT=1m"}
	for _, s := range services.All() {
		if s.Unset().Reads("SMTP_TIMEOUT") {
			settings = append(settings, "SMTP_TIMEOUT=15s")
		}
	}
	return settings
}
