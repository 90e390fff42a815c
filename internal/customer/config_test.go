package customer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestAShutdownLeavesARequestItsTime(t *testing.T) {
	t.Parallel()
	load := func(more ...string) error {
		var cfg Config
		return config.Load(append([]string{
			"DATABASE_URL=postgres://u@h/d", "KAFKA_BROKERS=h:9092", "VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
		}, more...), &cfg)
	}
	require.NoError(t, load("SHUTDOWN_TIMEOUT=30s", "REQUEST_TIMEOUT=30s"))
	var refused *config.Error
	require.ErrorAs(t, load("SHUTDOWN_TIMEOUT=30s", "REQUEST_TIMEOUT=31s"), &refused)
	require.Len(t, refused.Problems, 1)
	require.Equal(t, "SHUTDOWN_TIMEOUT", refused.Problems[0].Variable)
}
