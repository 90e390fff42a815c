package eventing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/testkit"
)

func (b *bundle) scrape(t *testing.T) func(series string) (sum float64, found bool) {
	t.Helper()
	answer := httptest.NewRecorder()
	b.admin.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, answer.Code)
	text := answer.Body.String()
	return func(series string) (sum float64, found bool) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, series) {
				continue
			}
			fields := strings.Fields(line)
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			require.NoError(t, err)
			sum, found = sum+value, true
		}
		return sum, found
	}
}

func (b *bundle) add(t *testing.T, topic, key string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.node.Pool, func(tx pgx.Tx) error {
		_, err := b.node.Outbox.Add(t.Context(), tx, event.Event{
			Source: "/test", Type: "test.pinged.v1", Topic: topic, Key: key, Data: []byte(`{"n":7}`),
		})
		return err
	}))
	b.node.Outbox.Committed()
}

func TestEveryInstanceTellsWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_TOPIC_PARTITIONS=1", "OUTBOX_LEASE=30s")
	cfg, topic := p.cfg, p.topic
	hold, handling := make(chan struct{}), make(chan struct{}, 10)
	instances := []*bundle{open(t, cfg), open(t, cfg)}
	for _, b := range instances {
		b.consume(t, eventing.Consumer{
			Name: "test.pings", Topic: topic,
			Handlers: pings(func(ctx context.Context, _ pgx.Tx, _ event.Event, _ pinged) error {
				handling <- struct{}{}
				select {
				case <-hold:
				case <-ctx.Done():
				}
				return nil
			}),
		})
		b.serve(t)
	}
	everywhere := func(series string, holds func(float64) bool) {
		t.Helper()
		for i, b := range instances {
			testkit.Until(t, func() bool {
				value, found := b.scrape(t)(series)
				return found && holds(value)
			}, "%s of instance %d", series, i)
		}
	}
	is := func(want float64) func(float64) bool { return func(value float64) bool { return value == want } }
	const (
		records = `kafka_consumer_lag_records{consumer="test.pings"`
		seconds = `kafka_consumer_lag_seconds{consumer="test.pings"`
	)
	everywhere("outbox_relay_has_leader", is(1))
	everywhere(records, is(0))

	for _, key := range []string{"a", "b", "c"} {
		instances[0].add(t, topic, key)
	}
	<-handling
	everywhere(records, is(3))
	everywhere(seconds, func(age float64) bool { return age > 1 })
	everywhere("outbox_relay_lag_events", is(0))
	close(hold)
	everywhere(records, is(0))
	everywhere(seconds, is(0))
	everywhere(`dead_letters_waiting{consumer="test.pings",state="dead"}`, is(0))
	for _, source := range []string{"outbox", "dead_letters", "consumer_lag"} {
		everywhere(`metrics_source_up{source="`+source+`"}`, is(1))
	}
	everywhere(`pgxpool_max_conns`, is(40))
}

func TestMetricsWithoutServers(t *testing.T) {
	t.Parallel()
	cfg := environ(t, "postgres://u@"+testkit.ReservePort(t)+"/d", testkit.ReservePort(t))
	b := open(t, cfg, cfg.Topics("written.v1")...)
	defer func() { require.NoError(t, b.node.Close()) }()
	b.consume(t, eventing.Consumer{Name: "c", Topic: "t", Handlers: inbox.NewMux()})
	began := time.Now()
	value := b.scrape(t)
	require.Less(t, time.Since(began), 10*time.Second)
	for _, source := range []string{"outbox", "dead_letters", "consumer_lag"} {
		up, found := value(`metrics_source_up{source="` + source + `"}`)
		require.True(t, found)
		require.Zero(t, up, source)
	}
	for _, series := range []string{"outbox_relay_lag_events", "kafka_consumer_lag_records", "dead_letters_waiting"} {
		_, found := value(series)
		require.False(t, found, "%s is not known", series)
	}
	for _, series := range []string{"go_goroutines", `outbox_topic_info{topic="written.v1"}`} {
		_, found := value(series)
		require.True(t, found, series)
	}
}
