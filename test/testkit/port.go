package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/port"
)

// ReservePort returns an address on loopback that no request for a free port gets. Connections are refused until a
// server listens.
func ReservePort(t testing.TB) string {
	t.Helper()
	addrs, err := port.Pick(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	return addrs[0]
}
