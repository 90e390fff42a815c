package realkafka

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path of the longest length has room for the data folder, and none for its lock.
func TestATemporaryFolderThatCannotBeLockedIsRemoved(t *testing.T) {
	cfg := withJava(t, "")
	dir := t.TempDir()
	room := syscall.PathMax - len("/kafka-4294967295\x00") - len(dir)
	dir += strings.Repeat("/"+strings.Repeat("d", 149), 40)[:room]
	require.NoError(t, os.MkdirAll(dir, 0o755))
	t.Setenv("TMPDIR", dir)
	_, err := Start(t.Context(), cfg)
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
