package kafka_test

import (
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// refuse answers the next n requests of each kind (-1: all) as a broker without the partition.
func refuse(cluster *kfake.Cluster, n int, with *kerr.Error, kinds ...kmsg.Key) {
	for _, kind := range kinds {
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kind}, Err: with, Count: n})
	}
}

// Partitions move while they are read, and a broker may not know a new topic yet.
func TestALogIsReadWhilePartitionsMove(t *testing.T) {
	t.Parallel()
	for _, with := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition} {
		cluster, brokers := kafkatest.Fake(t)
		topic := kafkatest.Topic(t, brokers, 1)
		cfg := kafka.Config{Brokers: brokers}.WithDefaults()
		require.NoError(t, publish(t, cfg, topic))
		require.NoError(t, publish(t, cfg, topic))
		refuse(cluster, 4, with, kmsg.ListOffsets, kmsg.Fetch)
		var values []string
		require.NoError(t, kafka.Ask(t.Context(), cfg, "read", func(c kafka.Cluster) error {
			ends, err := c.Offsets(topic, []int32{0}, sarama.OffsetNewest)
			require.NoError(t, err)
			require.Equal(t, []int64{2}, ends)
			next, err := c.Scan(topic, 0, 0, 2, func(m *message.Message) error {
				values = append(values, string(m.Payload))
				return nil
			})
			require.EqualValues(t, 2, next)
			return err
		}))
		require.Equal(t, []string{"a", "a"}, values)
	}
}

func TestALogWhosePartitionHasNoLeaderIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	refuse(cluster, -1, kerr.NotLeaderForPartition, kmsg.ListOffsets)
	cfg := kafka.Config{Brokers: brokers, RequestTimeout: 300 * time.Millisecond}
	require.ErrorIs(t, kafka.Ask(t.Context(), cfg, "read", func(c kafka.Cluster) error {
		_, err := c.Offsets(topic, []int32{0}, sarama.OffsetNewest)
		return err
	}), sarama.ErrNotLeaderForPartition)
}

// A sum over the first partition would be 0.
func TestLagIsKnownForAllPartitionsOrNone(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 2)
	cfg := kafka.Config{Brokers: brokers, RequestTimeout: 300 * time.Millisecond}
	names := keys(20)
	ofSecond := slices.IndexFunc(names, func(key string) bool { return kafka.PartitionOf(key, 2) == 1 })
	require.NoError(t, newPublisher(t, cfg).Publish(topic, newEvent(names[ofSecond], 1)))
	refuse(cluster, -1, kerr.NotLeaderForPartition, kmsg.Fetch)
	lags, err := kafka.ReadLag(t.Context(), cfg, "g", topic, nil)
	require.ErrorIs(t, err, sarama.ErrNotLeaderForPartition)
	require.Empty(t, lags)
}
