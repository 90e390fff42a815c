package pgtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/filelock"
)

// litter makes a folder as a test binary of an hour ago would have left it.
func litter(t *testing.T, place string) string {
	t.Helper()
	dir, err := os.MkdirTemp(place, folderPrefix)
	require.NoError(t, err)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
	require.NoError(t, os.Chtimes(dir, old, old))
	return dir
}

func TestSweepTakesUnusedFolders(t *testing.T) {
	t.Parallel()
	place := t.TempDir() // a place of its own: other packages' tests sweep the common one
	left, held := litter(t, place), litter(t, place)
	lock, err := filelock.Take(filepath.Join(held, "lock"))
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Release()) }()
	fresh, err := newFolder(place)
	require.NoError(t, err)

	sweep(place)
	require.NoDirExists(t, left)
	require.DirExists(t, held, "a server runs in it")
	require.DirExists(t, fresh.path)
	require.NoError(t, fresh.remove())
	require.NoDirExists(t, fresh.path)
}
