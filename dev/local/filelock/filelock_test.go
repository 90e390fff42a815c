package filelock_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/filelock"
)

func TestOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Take(path)
	require.NoError(t, err)

	_, err = filelock.Take(path)
	require.ErrorIs(t, err, filelock.ErrHeld)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid())+" runs on "+filepath.Dir(path))
	require.NoError(t, os.Truncate(path, 0), "as before the holder has written its id")
	_, err = filelock.Take(path)
	require.ErrorContains(t, err, "process (unknown) runs on ")

	require.NoError(t, lock.Unlock())
	lock, err = filelock.Take(path)
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
}
