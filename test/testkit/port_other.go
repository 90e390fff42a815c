//go:build !linux

package testkit

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReservePort returns an address on loopback without a listener right now. Another process may get it: on this system a
// listener cannot share a port with a socket that reserves it.
func ReservePort(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
