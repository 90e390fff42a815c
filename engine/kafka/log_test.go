package kafka_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/engine/kafka"
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
	require.ErrorIs(t, kafka.ReadLog(ended, cfg, topic, 0, func(*message.Message) error { return nil }), context.Canceled)
	require.NoError(t, kafka.ReadLog(t.Context(), cfg, "no."+topic, 0, func(*message.Message) error { return stop }),
		"a topic that does not exist holds nothing")
}

// A group whose offsets are forgotten reads everything again. One that has members keeps them.
func TestForgetOffsets(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := fast(brokers, kafkatest.Group(t))
	topic := kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, topic, 0, "1", "2")
	l := listen(t, cfg, topic)
	read(t, l, 2)
	awaitCommit(t, cfg, topic, 2)
	require.ErrorIs(t, kafka.ForgetOffsets(t.Context(), cfg.Config, cfg.Group), kafka.ErrGroupActive)
	require.NoError(t, l.Close())
	require.NoError(t, kafka.ForgetOffsets(t.Context(), cfg.Config, "never."+cfg.Group, cfg.Group))
	l = listen(t, cfg, topic)
	read(t, l, 2)
	require.NoError(t, l.Close())
}
