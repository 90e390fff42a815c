package kafka_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestLeadersThatMove(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.NumBrokers(3))
	topic := kafkatest.Topic(t, brokers, 3)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers[:1]})
	msgs := events(240, keys(20)...)
	for round := range 6 {
		require.NoError(t, publisher.Publish(topic, msgs[round*40:(round+1)*40]...))
		for partition := range int32(3) {
			require.NoError(t, cluster.MoveTopicPartition(topic, partition, (partition+int32(round))%3))
		}
	}
	require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
}

func TestAFailingPartitionFollowsItsLeader(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.NumBrokers(2))
	topic := kafkatest.Topic(t, brokers, 1)
	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 1))
	publisher := newPublisher(t, kafka.Config{Brokers: brokers, RetryFor: 100 * time.Millisecond})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	down := cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicas, Count: -1})
	require.Error(t, publisher.Publish(topic, newEvent("a", 2)))
	down.Remove()

	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 0))
	if err := publisher.Publish(topic, newEvent("a", 2)); err != nil { // the client may not have looked yet
		require.ErrorIs(t, err, sarama.ErrNotLeaderForPartition)
		require.NoError(t, publisher.Publish(topic, newEvent("a", 2)), "the next call knows")
	}
	require.Equal(t, []string{"a-1", "a-2"}, logOf(t, brokers, topic, 2)["a"])
}
