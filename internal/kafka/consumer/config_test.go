package consumer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/consumer"
)

func TestConsumerDefaults(t *testing.T) {
	t.Parallel()
	cfg := consumer.Config{}.WithDefaults()
	require.Equal(t, 200, cfg.Batch)
	require.Equal(t, 5*time.Second, cfg.DrainTimeout)
	require.Equal(t, 100*time.Millisecond, cfg.NackBackoff)
	require.Equal(t, 10*time.Second, cfg.PublishTimeout)
	require.Equal(t, 5*time.Second, cfg.RetryFor)
}

func TestConsumerConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := consumer.New(consumer.Config{Batch: -1, NackBackoff: -1, LookEvery: -1, GroupConfig: kafka.GroupConfig{
		HeartbeatInterval: 5 * time.Second, DrainTimeout: time.Minute, ReconnectBackoff: -1,
	}}, nil, nil)
	for _, problem := range []string{
		"at least one host:port", "a consumer group is needed", "batch", "third of the session timeout",
		"twice the drain timeout", "nack backoff", "look every", "reconnect backoff",
	} {
		require.ErrorContains(t, err, problem)
	}
}
