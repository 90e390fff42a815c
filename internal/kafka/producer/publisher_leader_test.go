package producer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestSeveralBrokersAreServedAtOnce(t *testing.T) {
	t.Parallel()
	_, brokers := kafkatest.Fake(t, kfake.NumBrokers(3))
	topic := kafkatest.Topic(t, brokers, 9)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers[:1]})
	msgs := events(900, keys(50)...)
	require.NoError(t, publisher.Publish(topic, msgs[:500]...))
	require.NoError(t, publisher.Publish(topic, msgs[500:]...))
	require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
}

func TestLeadersThatMove(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.NumBrokers(3))
	topic := kafkatest.Topic(t, brokers, 3)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	msgs := events(600, keys(20)...)
	for round := range 6 {
		require.NoError(t, publisher.Publish(topic, msgs[round*100:(round+1)*100]...))
		for partition := range int32(3) {
			require.NoError(t, cluster.MoveTopicPartition(topic, partition, (partition+int32(round))%3))
		}
	}
	require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
}

// TestAFailingPartitionFollowsItsLeader: a partition that has one attempt per call still learns where its leader went.
func TestAFailingPartitionFollowsItsLeader(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.NumBrokers(2))
	topic := kafkatest.Topic(t, brokers, 1)
	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 1))
	publisher := newPublisher(t, kafka.Config{Brokers: brokers, RetryFor: 100 * time.Millisecond})
	require.NoError(t, publisher.Publish(topic, event("a", 1)))
	down := cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicas, Count: -1})
	require.Error(t, publisher.Publish(topic, event("a", 2)))
	down.Remove()

	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 0))
	if err := publisher.Publish(topic, event("a", 2)); err != nil { // unless it looked after the move
		require.ErrorIs(t, err, sarama.ErrNotLeaderForPartition)
		require.NoError(t, publisher.Publish(topic, event("a", 2)), "the next call knows")
	}
	require.Equal(t, []string{"a-1", "a-2"}, logOf(t, brokers, topic, 2)["a"])
}

// TestABatchDoesNotGrowWhileItWaitsForALeader: what was taken for it stays within MaxMessageBytes however often it is
// tried. A batch that grew past it would be refused, or taken where the topic allows more than this publisher may send.
func TestABatchDoesNotGrowWhileItWaitsForALeader(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 2)
	const payload, maxBytes = 1000, 5000
	publisher := newPublisher(t, kafka.Config{
		Brokers: brokers, MaxMessageBytes: maxBytes, RetryFor: kafkatest.Patience, PublishTimeout: kafkatest.Patience,
	})
	msgs := events(100, keys(10)...)
	for _, msg := range msgs {
		msg.Payload = make([]byte, payload)
	}
	var most atomic.Int32 // records in a batch
	cluster.Fault(kfake.Fault{
		Keys: produce, Observe: true, Count: -1,
		When: func(r kmsg.Request) bool {
			for _, partition := range r.(*kmsg.ProduceRequest).Topics[0].Partitions {
				var batch kmsg.RecordBatch
				_ = batch.ReadFrom(partition.Records)
				most.Store(max(most.Load(), batch.NumRecords))
			}
			return true
		},
	})
	require.NoError(t, publisher.Publish(topic, event("first", 1)))
	// One partition's refusal makes the publisher look up the leaders, and the other one has none by then.
	cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.NotLeaderForPartition, Partitions: []int32{1}, Count: 1})
	away := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.LeaderNotAvailable, Topic: topic, Partitions: []int32{0}, Count: 8,
	})
	require.NoError(t, publisher.Publish(topic, msgs...))
	require.Equal(t, 8, away.Hits())
	require.Positive(t, most.Load())
	require.Less(t, int(most.Load())*payload, maxBytes)
	require.Equal(t, sent(append(msgs, event("first", 1))...), logOf(t, brokers, topic, len(msgs)+1))
}
