package relay

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/testkit"
)

func values(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	list := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			list[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return list
}

type collected struct{ db DB }

func (collected) Describe(chan<- *prometheus.Desc) {}

func (c collected) Collect(out chan<- prometheus.Metric) {
	metrics, err := Measure(context.Background(), c.db)
	if err != nil {
		return
	}
	for _, m := range metrics {
		out <- m
	}
}

func TestMetricsTellWhatHappens(t *testing.T) {
	t.Parallel()
	registry, pool, l := prometheus.NewRegistry(), newDatabase(t), newLedger()
	o, err := outbox.New(outbox.Config{Source: "/test", Registerer: registry})
	require.NoError(t, err)
	cfg := testRelayConfig(t, pool, l)
	registry.MustRegister(collected{pool})
	cfg.Registerer, cfg.patience, cfg.maintainEvery = registry, time.Minute, tick
	require.Zero(t, values(t, registry)["outbox_relay_has_leader"])
	startRelay(t, cfg)
	until := func(name string, is func(float64) bool) {
		t.Helper()
		testkit.Until(t, func() bool { return is(values(t, registry)[name]) }, name)
	}

	until("outbox_relay_leader", func(v float64) bool { return v == 1 })
	until("outbox_relay_has_leader", func(v float64) bool { return v == 1 })
	until("outbox_relay_position_room", func(v float64) bool { return v >= 4_000_000 })
	l.Follow(refuseKeys(&permanentError{Reason: "no"}, "bad"))
	commit(t, o, pool, newEvent("bad"), newEvent("a"), newEvent("a"))
	until("outbox_relay_published_total", func(v float64) bool { return v == 2 })
	until("outbox_relay_parked_keys", func(v float64) bool { return v == 1 })
	until("outbox_relay_held_events", func(v float64) bool { return v == 1 })
	until("outbox_relay_lag_events", func(v float64) bool { return v == 0 })

	l.Follow(func(int, string, []*message.Message) error { return errors.New("no broker") })
	old := newEvent("a")
	old.Time = time.Now().Add(-time.Hour)
	commit(t, o, pool, old, newEvent("b"))
	until("outbox_relay_lag_events", func(v float64) bool { return v == 2 })
	addMany(t, o, pool, 10, 3)
	until("outbox_relay_lag_events", func(v float64) bool { return v == 12 })
	until("outbox_relay_oldest_unpublished_seconds", func(v float64) bool { return v >= 3600 })
	until("outbox_relay_failures_total", func(v float64) bool { return v >= 3 })
	l.Follow(nil)
	until("outbox_relay_oldest_unpublished_seconds", func(v float64) bool { return v == 0 })

	until("outbox_relay_parked_keys", func(v float64) bool { return v == 0 })

	got := values(t, registry)
	require.Equal(t, 15.0, got["outbox_events_added_total"])
	require.Equal(t, 15.0, got["outbox_relay_published_total"])
	require.Equal(t, 1.0, got["outbox_relay_epoch"])
	require.Positive(t, got["outbox_relay_parkings_total"])
	require.Equal(t, got["outbox_relay_publish_seconds"], got["outbox_relay_batch_events"])

	_, err = outbox.New(outbox.Config{Registerer: registry})
	require.ErrorContains(t, err, "register outbox metrics")
}
