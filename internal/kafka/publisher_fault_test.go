package kafka_test

import (
	"errors"
	"strings"
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

var produce = []kmsg.Key{kmsg.Produce}

func TestFaultsThatARetryHides(t *testing.T) {
	t.Parallel()
	for name, inject := range map[string]func(*kfake.Cluster){
		"not leader": func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: produce, Err: kerr.NotLeaderForPartition, Count: 3})
		},
		"timed out after the append": func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: produce, Err: kerr.RequestTimedOut, Count: 3})
		},
		"too few replicas after the append": func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicasAfterAppend, Count: 2})
		},
		"one partition not leader": func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: produce, Err: kerr.NotLeaderForPartition, Partitions: []int32{0}, Count: 2})
		},
		"connection cut": func(c *kfake.Cluster) {
			left := 3
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				if left--; left == 0 {
					c.DropControl()
				} else {
					c.KeepControl()
				}
				return nil, errors.New("cut"), true
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := kafkatest.Fake(t)
			topic := kafkatest.Topic(t, brokers, 3)
			publisher := newPublisher(t, kafka.Config{Brokers: brokers, MaxMessageBytes: 2000})
			msgs := events(80, keys(10)...)
			require.NoError(t, publisher.Publish(topic, msgs[:30]...))
			inject(cluster)
			require.NoError(t, publisher.Publish(topic, msgs[30:]...))
			require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
		})
	}
}

func TestABrokerThatHasNoProducerIDYet(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	began := time.Now()
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: -1,
		When: func(kmsg.Request) bool { return time.Since(began) < time.Second },
	})
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, newEvent("a", 1)))
}

func TestAPartitionRefusedForEverHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 2)
	publisher := newPublisher(t, kafka.Config{
		Brokers: brokers, RetryFor: 200 * time.Millisecond,
	})
	refusal := cluster.Fault(kfake.Fault{
		Keys: produce, Err: kerr.NotEnoughReplicas, Topic: topic, Partitions: []int32{0}, Count: -1,
	})
	msgs := events(100, keys(10)...)

	err := publisher.Publish(topic, msgs[:50]...)
	require.ErrorIs(t, err, sarama.ErrNotEnoughReplicas)
	require.False(t, isPermanent(err))
	left := unsent(t, err, msgs[:50])
	require.NotEmpty(t, left)
	require.Less(t, len(left), 50)

	refusal.Remove()
	require.NoError(t, publisher.Publish(topic, append(left, msgs[50:]...)...))
	require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
}

// TestNothingOvertakesAFailedBatch: the second of several batches fails for good.
func TestNothingOvertakesAFailedBatch(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]*kerr.Error{
		"not appended":         kerr.NotEnoughReplicas,
		"appended, not acked":  kerr.RequestTimedOut,
		"out of sequence":      kerr.OutOfOrderSequenceNumber,
		"producer not known":   kerr.UnknownProducerID,
		"producer epoch stale": kerr.InvalidProducerEpoch,
		"unknown answer":       kerr.UnknownServerError,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := kafkatest.Fake(t)
			topic := kafkatest.Topic(t, brokers, 1)
			publisher := newPublisher(t, kafka.Config{
				Brokers: brokers, MaxMessageBytes: 3000, RetryFor: 120 * time.Millisecond,
			})
			batches := 0
			fault := cluster.Fault(kfake.Fault{
				Keys: produce, Topic: topic, Err: refusal, Count: -1,
				When: func(kmsg.Request) bool { batches++; return batches > 1 },
			})
			msgs := events(100, keys(3)...)

			err := publisher.Publish(topic, msgs...)
			left := unsent(t, err, msgs)
			require.Equal(t, idsOf(msgs[100-len(left):]), idsOf(left), "what failed is a tail")
			require.False(t, isPermanent(err))

			fault.Remove()
			require.NoError(t, publisher.Publish(topic, left...), "usable again")
			requireOrder(t, msgs, logOf(t, brokers, topic, len(msgs)))
		})
	}
}

func TestAnInvalidRecordIsIsolated(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	msgs := events(50, keys(5)...)
	msgs[17].Payload = []byte("poison")
	cluster.Fault(kfake.Fault{
		Keys: produce, Topic: topic, Err: kerr.InvalidRecord, Count: -1,
		When: func(r kmsg.Request) bool {
			request := r.(*kmsg.ProduceRequest)
			return strings.Contains(string(request.Topics[0].Partitions[0].Records), "poison")
		},
	})

	failed := failures(t, publisher.Publish(topic, msgs...))
	require.True(t, isPermanent(failed[17]))
	delete(failed, 17)
	require.Len(t, failed, 6, "the later ones of its key")
	for i, err := range failed {
		require.Equal(t, 17%5, i%5)
		require.ErrorIs(t, err, kafka.ErrNotSent)
	}
	want := sent(msgs...)
	want["key-002"] = want["key-002"][:3]
	require.Equal(t, want, logOf(t, brokers, topic, 43))
}

// The call ends before the records that the broker refused with another one have been sent alone.
func TestARecordOfARefusedBatchHasNotFailed(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers, PublishTimeout: time.Second})
	cluster.Fault(kfake.Fault{Keys: produce, Topic: topic, Err: kerr.InvalidRecord, Count: 1})
	isFirst := true
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		defer func() { isFirst = false }()
		return nil, nil, !isFirst // the others get no answer
	})
	for _, why := range failures(t, publisher.Publish(topic, events(50, keys(50)...)...)) {
		require.False(t, isPermanent(why), why)
	}
}

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
