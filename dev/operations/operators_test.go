package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
)

// How to operate a stack is the folder's owner's alone, and what is half written or not there is not taken for it.
func TestOperatorsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := client.ReadOperators(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	remove, err := writeOperators(local.Addresses{
		Dir: dir, AdminToken: "t",
		Services: map[string]local.Listen{"customer": {Admin: "[::]:8081"}, "notification": {Admin: "10.0.0.5:8082"}},
	})
	require.NoError(t, err)
	o, err := client.ReadOperators(dir)
	require.NoError(t, err)
	require.Equal(t, client.Operators{
		Services: map[string]string{"customer": "127.0.0.1:8081", "notification": "10.0.0.5:8082"}, Token: "t",
	}, o)
	info, err := os.Stat(filepath.Join(dir, client.OperatorsFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, remove())
	require.NoError(t, remove(), "another process removed it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, client.OperatorsFile), []byte(`{"token":"t"`), 0o600))
	_, err = client.ReadOperators(dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrNotExist, "something runs here, or did")
}
