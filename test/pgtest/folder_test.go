package pgtest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweepTakesOldFolders(t *testing.T) {
	t.Parallel()
	place := t.TempDir() // other packages' tests sweep the common one
	left, err := newFolder(place)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(dataIn(left), 0o700))
	old := time.Now().Add(-sweepAfter - time.Minute)
	require.NoError(t, os.Chtimes(left, old, old))
	fresh, err := newFolder(place)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.DirExists(t, fresh)
	require.NoError(t, removeFolder(fresh))
	require.NoDirExists(t, fresh)
}
