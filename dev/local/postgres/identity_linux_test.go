package postgres_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/localtest"
	"example.com/twinbox/dev/local/postgres"
)

// identities lists the ways to run that this process can be tested in: a normal user has one.
func identities() map[string]postgres.Identity {
	if os.Geteuid() != 0 {
		return map[string]postgres.Identity{"user": postgres.Auto}
	}
	ways := map[string]postgres.Identity{"root auto": postgres.Auto, "root as account": postgres.Account}
	if postgres.NamespaceAllowed() { // many containers deny it
		ways["root in namespace"] = postgres.Namespace
	}
	return ways
}

func TestDataSurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, way := range identities() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := postgres.Config{Dir: filepath.Join(localtest.Folder(t), "data"), Durable: true, Identity: way}
			server := startServer(t, cfg)
			exec(t, server, `create table kept as select 42 as n`)
			require.NoError(t, server.Stop(t.Context()))
			require.NoError(t, server.Err())
			require.NoError(t, server.Stop(t.Context()), "a second stop is fine")

			// Root never mixes its two ways.
			other, hasOther := map[postgres.Identity]postgres.Identity{
				postgres.Namespace: postgres.Account, postgres.Account: postgres.Namespace,
			}[way]
			if hasOther && postgres.NamespaceAllowed() {
				cfg.Identity = other
				_, err := postgres.Start(t.Context(), cfg)
				require.ErrorIs(t, err, postgres.ErrOwner)
			}

			// The folder's owner says how it was made, so no wish is needed to enter it again.
			cfg.Identity = postgres.Auto
			again := startServer(t, cfg)
			require.Equal(t, 42, query[int](t, again, `select n from kept`))
		})
	}
}
