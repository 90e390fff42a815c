package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/test/testkit"
)

// freezing is a connection whose process stops reading after some bytes.
type freezing struct {
	net.Conn
	left   atomic.Int64
	thawed chan struct{}
}

func (c *freezing) Read(b []byte) (int, error) {
	if c.left.Load() <= 0 {
		<-c.thawed
		return 0, errors.New("frozen")
	}
	n, err := c.Conn.Read(b)
	c.left.Add(int64(-n))
	return n, err
}

// The session is not idle while the server sends a page, and a statement timeout does not interrupt a network wait.
func TestALeaderThatFreezesInAPageIsReplaced(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	server, err := postgres.Start(t.Context(), postgres.Config{
		Dir: filepath.Join(testkit.Folder(t), "data"), Settings: map[string]string{"listen_addresses": address},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	pool := migrated(t, server.DSN("postgres"))
	execSQL(t, pool, largeRowsSQL, megabyte, 24)

	overTCP, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", postgres.Superuser, address))
	require.NoError(t, err)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Lease, cfg.PublishTimeout = 2*time.Second, time.Second
	frozen := &freezing{thawed: make(chan struct{})}
	frozen.left.Store(4 * megabyte)
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		own := overTCP.Copy()
		own.DialFunc = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			frozen.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return frozen, err
		}
		return pgx.ConnectConfig(ctx, own)
	}
	startRelay(t, cfg)
	t.Cleanup(func() { close(frozen.thawed) })
	testkit.Until(t, func() bool { return frozen.left.Load() <= 0 })

	l, began := newLedger(), time.Now()
	cfg.Publisher = l
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, overTCP) }
	startRelay(t, cfg)
	l.AwaitDistinct(t, 24)
	t.Logf("replaced after %s", time.Since(began))
}
