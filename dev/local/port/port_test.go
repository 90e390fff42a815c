package port

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPickedPortIsNotGivenToOthers(t *testing.T) {
	t.Parallel()
	for range 20 {
		addr, err := Pick(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.GreaterOrEqual(t, number, lowest)
		require.Less(t, number, highest)
	}
}

func TestABusyPortIsAnError(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, busy.Close()) }()
	_, err = Pick(t.Context(), busy.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}
