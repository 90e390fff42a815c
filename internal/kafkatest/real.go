package kafkatest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/local/realkafka"
)

// real is the one real broker of this test binary, started by the first test that asks.
var real struct {
	sync.Mutex
	server *realkafka.Server
	err    error
}

// startReal returns the address of the real broker. What is missing to run it fails the test; nothing is skipped.
func startReal(t testing.TB) string {
	t.Helper()
	real.Lock()
	defer real.Unlock()
	if real.server == nil && real.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // the first time it is fetched
		defer cancel()
		real.server, real.err = realkafka.Start(ctx, realkafka.Config{
			Progress: func(what string) { _, _ = os.Stderr.WriteString("kafkatest: " + what + "\n") },
		})
	}
	require.NoError(t, real.err, "start the real Kafka")
	return real.server.Addr()
}

func stopReal() {
	real.Lock()
	defer real.Unlock()
	if real.server != nil {
		if err := real.server.Stop(); err != nil {
			_, _ = os.Stderr.WriteString("kafkatest: " + err.Error() + "\n")
		}
	}
}
