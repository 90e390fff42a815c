package inbox_test

import (
	"bytes"
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// severing breaks connections at each answer that cut selects: the client never gets it.
func (b *bundle) severing(t *testing.T, cut func(answer []byte) bool) *pgxpool.Pool {
	t.Helper()
	return b.dialing(t, func(conn net.Conn) net.Conn { return &severed{Conn: conn, cut: cut} })
}

func (b *bundle) dialing(t *testing.T, between func(net.Conn) net.Conn) *pgxpool.Pool {
	t.Helper()
	cfg := b.Pool.Config()
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return between(conn), nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return pool
}

type severed struct {
	net.Conn
	cut func([]byte) bool
}

func (s *severed) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	if n > 0 && s.cut(into[:n]) {
		_ = s.Close()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

func isCommitted(answer []byte) bool { return bytes.Contains(answer, []byte("COMMIT\x00")) }
