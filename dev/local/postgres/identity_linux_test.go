package postgres_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
)

// Many containers deny root a user namespace, so the account is tried as well.
func TestDataSurvivesARestart(t *testing.T) {
	t.Parallel()
	ways := map[string]bool{"default": false}
	if os.Geteuid() == 0 {
		ways["account"] = true
	}
	for name, account := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := postgres.Config{Dir: filepath.Join(testkit.Folder(t), "data"), Durable: true, Account: account}
			server := startServer(t, cfg)
			exec(t, server, `create table kept as select 42 as n`)
			require.NoError(t, server.Stop(t.Context()))
			require.NoError(t, server.Err())
			require.NoError(t, server.Stop(t.Context()), "a second stop is fine")

			cfg.Account = !account
			again := startServer(t, cfg)
			require.Equal(t, 42, query[int](t, again, `select n from kept`))
		})
	}
}
