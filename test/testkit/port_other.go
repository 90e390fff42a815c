//go:build !linux

package testkit

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReservePort gives an address on loopback without a listener right now. This system lets no listener share a port
// with the socket that would keep others away, so another process may take it.
func ReservePort(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
