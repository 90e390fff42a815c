package kafka_test

import (
	"slices"
	"sync/atomic"
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

// refuse answers the next n requests as a broker does that does not have the partition yet, or any more.
func refuse(cluster *kfake.Cluster, n int32, with *kerr.Error) {
	var offsets, records atomic.Int32
	cluster.ControlKey(int16(kmsg.ListOffsets), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if offsets.Add(1) > n {
			return nil, nil, false
		}
		return noOffsets(asked, with), nil, true
	})
	cluster.ControlKey(int16(kmsg.Fetch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if records.Add(1) > n {
			return nil, nil, false
		}
		return noRecords(asked, with), nil, true
	})
}

func noOffsets(asked kmsg.Request, with *kerr.Error) kmsg.Response {
	request := asked.(*kmsg.ListOffsetsRequest)
	response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, topic := range request.Topics {
		answer := kmsg.NewListOffsetsResponseTopic()
		answer.Topic = topic.Topic
		for _, p := range topic.Partitions {
			partition := kmsg.NewListOffsetsResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, with.Code
			answer.Partitions = append(answer.Partitions, partition)
		}
		response.Topics = append(response.Topics, answer)
	}
	return response
}

func noRecords(asked kmsg.Request, with *kerr.Error) kmsg.Response {
	request := asked.(*kmsg.FetchRequest)
	response := request.ResponseKind().(*kmsg.FetchResponse)
	for _, topic := range request.Topics {
		answer := kmsg.NewFetchResponseTopic()
		answer.Topic = topic.Topic
		for _, p := range topic.Partitions {
			partition := kmsg.NewFetchResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, with.Code
			answer.Partitions = append(answer.Partitions, partition)
		}
		response.Topics = append(response.Topics, answer)
	}
	return response
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
		refuse(cluster, 4, with)
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
	refuse(cluster, 1<<30, kerr.NotLeaderForPartition)
	cfg := kafka.Config{Brokers: brokers, RequestTimeout: 300 * time.Millisecond}
	require.ErrorIs(t, kafka.Ask(t.Context(), cfg, "read", func(c kafka.Cluster) error {
		_, err := c.Offsets(topic, []int32{0}, sarama.OffsetNewest)
		return err
	}), sarama.ErrNotLeaderForPartition)
}

func TestAScanSaysWhyItDoesNotKnowWhereALogBegins(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	cluster.ControlKey(int16(kmsg.Fetch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return noRecords(asked, kerr.OffsetOutOfRange), nil, true
	})
	cluster.ControlKey(int16(kmsg.ListOffsets), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return noOffsets(asked, kerr.KafkaStorageError), nil, true
	})
	require.ErrorIs(t, kafka.Ask(t.Context(), kafka.Config{Brokers: brokers}, "read", func(c kafka.Cluster) error {
		_, err := c.Scan(topic, 0, 3, 5, func(*message.Message) error { return nil })
		return err
	}), sarama.ErrKafkaStorageError)
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
	cluster.ControlKey(int16(kmsg.Fetch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return noRecords(asked, kerr.NotLeaderForPartition), nil, true
	})
	lags, err := kafka.ReadLag(t.Context(), cfg, "g", topic)
	require.ErrorIs(t, err, sarama.ErrNotLeaderForPartition)
	require.Empty(t, lags)
}

// The known partitions are reported: a missing figure would end an alert.
func TestLagIsToldWhileATopicGrows(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	cfg := kafka.Config{Brokers: brokers}.WithDefaults()
	require.NoError(t, publish(t, cfg, topic))
	asked, grown, again := make(chan struct{}, 1), make(chan struct{}), false
	cluster.ControlKey(int16(kmsg.ListOffsets), func(question kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-grown:
			if again {
				return nil, nil, false
			}
			again = true // the client refreshes the topic before its next request
		default:
		}
		return noOffsets(question, kerr.NotLeaderForPartition), nil, true
	})
	operator, growing := kafkatest.Admin(t, brokers), make(chan error, 1)
	go func() {
		<-asked
		growing <- operator.CreatePartitions(topic, 2, nil, false)
		close(grown)
	}()
	lags, err := kafka.ReadLag(t.Context(), cfg, "g", topic)
	require.NoError(t, err)
	require.NoError(t, <-growing)
	require.Len(t, lags, 1)
	require.EqualValues(t, 1, lags[0].Records)
}
