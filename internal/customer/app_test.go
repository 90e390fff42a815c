package customer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSlowestRequestStillGetsItsAnswer(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{100 * time.Millisecond, 10 * time.Second, 5 * time.Minute} {
		cfg := Config{RequestTimeout: timeout}
		cfg.DrainFor = time.Second
		bounds := cfg.server().WithDefaults()
		require.Greater(t, bounds.WriteTimeout, bounds.ReadTimeout, "a body under REQUEST_TIMEOUT=%s", timeout)
		require.Greater(t, bounds.WriteTimeout, timeout, "a transaction under REQUEST_TIMEOUT=%s", timeout)
	}
}
