package kafka_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestReadLog(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg, topic := kafka.Config{Brokers: brokers}, kafkatest.Topic(t, brokers, 2)
	toPartition(t, brokers, topic, 0, "1", "2", "3")
	toPartition(t, brokers, topic, 1, "4")
	of := func(last int64) (values []string) {
		t.Helper()
		require.NoError(t, kafka.ReadLog(t.Context(), cfg, topic, last, func(m *message.Message) error {
			values = append(values, string(m.Payload))
			return nil
		}))
		return values
	}
	require.Equal(t, []string{"1", "2", "3", "4"}, of(0), "all, in the order of partitions and offsets")
	require.Equal(t, []string{"2", "3", "4"}, of(2), "the last ones of each partition")

	stop := errors.New("enough")
	require.ErrorIs(t, kafka.ReadLog(t.Context(), cfg, topic, 0, func(*message.Message) error { return stop }), stop)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	none := func(*message.Message) error { return nil }
	require.ErrorIs(t, kafka.ReadLog(ended, cfg, topic, 0, none), context.Canceled)
	require.NoError(t, kafka.ReadLog(t.Context(), cfg, "no."+topic, 0, func(*message.Message) error { return stop }),
		"a topic that does not exist holds nothing")
}
