package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// throttle gives a client a quota, which the broker in process does not know.
func throttle(t *testing.T, brokers []string, client string, bytesPerSecond float64) {
	t.Helper()
	if !kafkatest.IsReal() {
		t.Skip("quotas are a real broker's: make test-kafka runs it")
	}
	cluster := admin(t, brokers)
	entity := []sarama.QuotaEntityComponent{{
		EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: client,
	}}
	for _, key := range []string{"producer_byte_rate", "consumer_byte_rate"} {
		require.NoError(t, cluster.AlterClientQuotas(entity,
			sarama.ClientQuotasOp{Key: key, Value: bytesPerSecond}, false))
	}
}

// Clients that a quota holds back are slow: nothing fails. A member keeps its partitions if its session is longer than
// the broker holds a connection back, heartbeats included: 11 s, quota.window.num times quota.window.size.seconds.
func TestThrottledClientsAreSlow(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	client := kafkatest.Group(t)
	throttle(t, brokers, client, 50_000)
	topic := kafkatest.Topic(t, brokers, 3)
	throttled := kafka.Config{Brokers: brokers, ClientID: client, PublishTimeout: 5 * time.Second}
	publisher := newPublisher(t, throttled)
	pending := events(300, keys(30)...)
	for _, msg := range pending {
		msg.Payload = make([]byte, 2000) // which no codec makes smaller
		_, err := rand.Read(msg.Payload)
		require.NoError(t, err)
	}
	total := len(pending)
	for len(pending) > 0 {
		repeated, err := publisher.PublishAcked(t.Context(), topic, pending...)
		if err == nil {
			break
		}
		for _, failed := range failures(t, err) {
			isSlow := isUnfinished(failed) || errors.Is(failed, kafka.ErrNotSent)
			require.True(t, isSlow || repeated, "%v", failed) // a repeated batch that has no answer counts as failed
		}
		pending = unsent(t, err, pending)
	}

	cfg := batches(brokers, kafkatest.Group(t))
	cfg.ClientID, cfg.HeartbeatInterval = client, time.Second
	var seen atomic.Int64
	began := time.Now()
	r := consume(t, cfg, topic, func(_ context.Context, batch []*message.Message) (int, error) {
		seen.Add(int64(len(batch)))
		return len(batch), nil
	}, nil)
	r.awaitPartition(t)
	testkit.Until(t, func() bool {
		require.NoError(t, r.Healthy(t.Context()))
		return seen.Load() >= int64(total)
	})
	require.Empty(t, r.lost)
	t.Logf("read %d records in %s", seen.Load(), time.Since(began).Round(time.Second))
}
