package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

func TestConsumerConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := kafka.NewConsumer(kafka.ConsumerConfig{Batch: -1, NackBackoff: -1, GroupConfig: kafka.GroupConfig{
		HeartbeatInterval: 5 * time.Second, DrainTimeout: time.Minute, ReconnectBackoff: -1,
	}}, nil, nil)
	for _, problem := range []string{
		"at least one host:port", "a consumer group is needed", "batch", "third of the session timeout",
		"twice the drain timeout", "nack backoff", "reconnect backoff",
	} {
		require.ErrorContains(t, err, problem)
	}
}
