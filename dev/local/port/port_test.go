package port

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPickedPortIsNotGivenToOthers(t *testing.T) {
	t.Parallel()
	// 1,000 of the 12,000 ports: some would be picked twice.
	addrs, err := Pick(t.Context(), slices.Repeat([]string{"127.0.0.1:0"}, 1000)...)
	require.NoError(t, err)
	for i, addr := range addrs {
		require.NotContains(t, addrs[:i], addr)
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
