package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/filelock"
)

func TestResetLeavesARunningSystemAlone(t *testing.T) {
	t.Parallel()
	for _, name := range locks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			kept := filepath.Join(dir, "postgres", "PG_VERSION")
			require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o755))
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			require.NoError(t, os.WriteFile(kept, []byte("18"), 0o600))
			lock, err := filelock.Take(filepath.Join(dir, name))
			require.NoError(t, err)

			code, _, stderr := invoke(t, "reset", dir)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, fmt.Sprintf("process %d runs on", os.Getpid()))
			require.FileExists(t, kept)
			require.NoError(t, lock.Unlock())
			code, _, stderr = invoke(t, "reset", dir)
			require.Zero(t, code, stderr)
			require.NoDirExists(t, dir)
		})
	}
}

func TestResetOfNothing(t *testing.T) {
	t.Parallel()
	code, _, stderr := invoke(t, "reset", filepath.Join(t.TempDir(), "none"))
	require.Zero(t, code, stderr)
}
