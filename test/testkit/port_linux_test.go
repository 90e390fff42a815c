package testkit_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// Two goroutines would soon get the same free port.
func TestAReservedPortIsGivenToNoOther(t *testing.T) {
	t.Parallel()
	const many = 100
	addr := testkit.ReservePort(t)
	reserved := map[string]bool{addr: true}
	for range many {
		other := testkit.ReservePort(t)
		require.False(t, reserved[other], "%s twice", other)
		reserved[other] = true
	}
	for range 20 * many {
		listener := listen(t, "127.0.0.1:0")
		require.False(t, reserved[listener.Addr().String()], "%s is taken", listener.Addr())
		require.NoError(t, listener.Close())
	}
	for range 2 { // a server that comes back
		require.ErrorIs(t, visit(t, addr), syscall.ECONNREFUSED)
		listener := listen(t, addr)
		require.NoError(t, visit(t, addr))
		require.NoError(t, listener.Close())
	}
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	return listener
}

func visit(t *testing.T, addr string) error {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err == nil {
		err = conn.Close()
	}
	return err
}
