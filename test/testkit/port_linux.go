package testkit

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// ReservePort gives an address on loopback that is the test's until it ends, whether a server of it listens there or not.
// Where none does, connections are refused. A socket stays bound to the port and never listens: a request for any
// free port gets another one, and a listener opened by package net on this one shares it.
func ReservePort(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err, "open socket")
	t.Cleanup(func() { require.NoError(t, syscall.Close(fd)) })
	require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), "share the port")
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), "take a port")
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	bound, ok := name.(*syscall.SockaddrInet4)
	require.True(t, ok, "%T", name)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.Port))
}
