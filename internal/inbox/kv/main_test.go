package kv

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/test/natsserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const waitLimit = 30 * time.Second

type effects struct {
	mu    sync.Mutex
	count map[string]int
}

func (e *effects) note(name string) func(context.Context) error {
	return func(context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.count == nil {
			e.count = map[string]int{}
		}
		e.count[name]++
		return nil
	}
}

func (e *effects) of(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count[name]
}

func quiet(registry *prometheus.Registry) Config {
	return Config{
		Owner: "test", HandlerTimeout: waitLimit, StoreTimeout: waitLimit,
		retryMin: time.Millisecond, retryMax: 5 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler), Registerer: registry,
	}
}

func counter(t *testing.T, registry *prometheus.Registry, name string, values ...string) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	sum := 0.
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			found := 0
			for _, value := range values {
				for _, label := range metric.GetLabel() {
					if label.GetValue() == value {
						found++
					}
				}
			}
			if found == len(values) {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

const (
	messages      = "inbox_kv_messages_total"
	lookups       = "inbox_kv_lookups_total"
	secondEffects = "inbox_kv_second_effects_possible_total"
	storeErrors   = "inbox_kv_store_errors_total"
	evictions     = "inbox_kv_cache_evictions_total"
)

func bucket(t *testing.T, server *natsserver.TestServer, ttl time.Duration) *JetStream {
	t.Helper()
	store, err := Bucket(t.Context(), server.Connect(t), BucketConfig{Name: "inbox", TTL: ttl})
	require.NoError(t, err)
	return store
}

func newInbox(t *testing.T, store Store, cfg Config) *Inbox {
	t.Helper()
	in, err := New(store, cfg)
	require.NoError(t, err)
	return in
}
