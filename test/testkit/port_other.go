//go:build !linux

package testkit

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReservePort returns a free address on loopback, which another process may get: on this system no listener shares a
// reserved port.
func ReservePort(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
