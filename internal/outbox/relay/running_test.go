package relay

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b[:len(b)-1]))
	return len(b), nil
}

// testLease outlasts a busy machine's delays.
const testLease = time.Minute

func testRelayConfig(t testing.TB, pool *pgxpool.Pool, p message.Publisher) Config {
	t.Helper()
	return Config{
		Connect: dial(t, pool), Publisher: p, Name: "test",
		pollMin: time.Millisecond, PollMax: 10 * time.Millisecond,
		Lease: testLease, PublishTimeout: testLease / 3, MaxSilence: testLease,
		retryMin: 2 * time.Millisecond, retryMax: 20 * time.Millisecond,
		parkedRetryMax: 20 * time.Millisecond, patience: 50 * time.Millisecond,
	}
}

type running struct {
	*Relay
	stop func() // and wait
}

func startRelay(t testing.TB, cfg Config) running {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	r, err := New(cfg)
	require.NoError(t, err)
	return startRelayOf(t, r)
}

func startRelayOf(t testing.TB, r *Relay) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- r.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-result:
			require.NoError(t, err)
		case <-time.After(testTimeout):
			require.FailNow(t, "the relay does not stop")
		}
	}
	t.Cleanup(stop)
	return running{r, stop}
}

func (r *Relay) lastError() error {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	return r.health.err
}

func (r *Relay) unwell(t testing.TB, why string) bool {
	t.Helper()
	err := r.Healthy(t.Context())
	return err != nil && strings.Contains(err.Error(), why)
}

func (r *Relay) leads() bool { return testutil.ToFloat64(r.metrics.leader) == 1 }

func (r *Relay) follows() bool {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	return r.health.state == stateFollowing
}
