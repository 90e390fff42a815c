package filelock_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/filelock"
)

func TestOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Take(path)
	require.NoError(t, err)

	_, err = filelock.Take(path)
	var held *filelock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, os.Getpid(), held.PID)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid())+" already runs on ")
	require.NoError(t, os.Truncate(path, 0), "as before the holder has written its id")
	_, err = filelock.Take(path)
	require.ErrorContains(t, err, "another process already runs on ")

	require.NoError(t, lock.Release())
	lock, err = filelock.Take(path)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

func TestAwait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Take(path)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = filelock.Await(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	waited := make(chan error, 1)
	go func() {
		second, err := filelock.Await(context.WithoutCancel(ctx), path)
		if err == nil {
			err = second.Release()
		}
		waited <- err
	}()
	require.NoError(t, lock.Release())
	require.NoError(t, <-waited)
}

func TestTakeInAFolderThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := filelock.Take(filepath.Join(t.TempDir(), "none", "lock"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
