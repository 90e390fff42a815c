package operations

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/testkit"
)

func TestAnOperatorReachesAServiceThatWaits(t *testing.T) {
	t.Parallel()
	shop := stacktest.Service("shop")
	shop.Operations = func(node *eventing.Node, _ stacktest.Settings) error { return ops.Offer(node, ops.Own{}) }
	cfg := local.Config{
		Dir: filepath.Join(testkit.Folder(t), "state"), Settings: stacktest.Patient(),
		Extra:    []eventing.Described{shop.Describe()},
		Services: map[string]local.Listen{"shop": {Admin: testkit.ReservePort(t)}},
	}
	console := Console("127.0.0.1:0")
	ready, ended := make(chan local.Addresses, 1), make(chan error, 1)
	cfg.Programs, cfg.Ready = []local.Program{console}, func(at local.Addresses) { ready <- at }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- local.Run(ctx, cfg) }()
	var at local.Addresses
	select {
	case at = <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}

	db, err := pgx.Connect(t.Context(), at.Databases["shop"])
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `update outbox_cursor set refused = 'events_unknown: 3 records have no row here.'`)
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	operators, err := client.ReadOperators(cfg.Dir)
	require.NoError(t, err)
	s, err := client.New("shop", operators.Services["shop"], operators.Token)
	require.NoError(t, err)
	result, err := client.Call[adminapi.Result](t.Context(), s, client.Post("/admin/v1/outbox/confirm",
		adminapi.ConfirmRequest{By: "ada", Reason: "a drill", Code: "events_unknown"}))
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Count)
	require.Contains(t, result.Note, "3 records have no row here.")
	stop()
	require.NoError(t, <-ended)
}

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
