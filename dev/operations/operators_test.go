package operations

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/verify"
)

func TestOperatorsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := client.ReadOperators(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	file, err := writeOperators(local.Addresses{
		Dir: dir, AdminToken: "t",
		Services: map[string]local.Listen{"customer": {Admin: "[::]:8081"}, "notification": {Admin: "10.0.0.5:8082"}},
	})
	require.NoError(t, err)
	o, err := client.ReadOperators(dir)
	require.NoError(t, err)
	require.Equal(t, client.Operators{
		Services: map[string]string{"customer": "127.0.0.1:8081", "notification": "10.0.0.5:8082"}, Token: "t",
		Verify: verify.System{Brokers: []string{""}},
	}, o)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(file, []byte(`{"token":"t"`), 0o600))
	_, err = client.ReadOperators(dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrNotExist, "something runs here, or did")
}
