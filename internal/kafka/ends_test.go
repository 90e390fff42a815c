package kafka_test

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// sarama may use a connection before it is open.
func TestAFreshPublisherWritesNothingTwice(t *testing.T) {
	t.Parallel()
	_, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 6)
	for range 200 {
		p := newPublisher(t, kafka.Config{Brokers: brokers})
		repeated, err := p.PublishAcked(t.Context(), topic, events(20, keys(20)...)...)
		require.NoError(t, err)
		require.False(t, repeated)
		require.NoError(t, p.Close())
	}
}

func TestAcknowledgementsAreWhereTheLogHasThem(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 3)
	p := newPublisher(t, kafka.Config{Brokers: brokers})
	sent := 0
	testkit.Until(t, func() bool { // a new topic may have no leaders yet: nothing is written then, and sent again
		repeated, err := p.PublishAcked(t.Context(), topic, events(10, keys(10)...)...)
		require.NoError(t, err)
		sent += 10
		return !repeated
	})
	msgs := events(40, keys(10)...)
	repeated, err := p.PublishAcked(t.Context(), topic, msgs...)
	require.NoError(t, err)
	require.False(t, repeated)
	next := map[int32]int64{}
	require.NoError(t, p.EachEnd(t.Context(), []string{topic}, func(_ string, n int32, start, end int64, err error) {
		require.NoError(t, err)
		require.Zero(t, start)
		next[n] = end
	}))
	var records int64
	for _, end := range next {
		records += end
	}
	require.Equal(t, int64(sent+len(msgs)), records)
	for _, m := range msgs {
		place, acknowledged := event.OriginFrom(m.Context())
		require.True(t, acknowledged)
		require.Equal(t, place.Partition, p.PartitionOf(m.Metadata[event.KeyMetadata], 3))
		found, err := p.ReadLog(t.Context(), topic, place.Partition, place.Offset, place.Offset+1)
		require.NoError(t, err)
		require.Len(t, found, 1)
		origin, _ := event.OriginFrom(found[0].Context())
		require.Equal(t, m.UUID, found[0].UUID)
		require.Equal(t, place.Offset, origin.Offset)
		require.Equal(t, place.Time.UnixMilli(), origin.Time.UnixMilli())
	}
}

func TestAMissingTopicHasNoEnds(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	p := newPublisher(t, kafka.Config{Brokers: brokers})
	answers := map[string]error{}
	note := func(name string, _ int32, _, _ int64, err error) { answers[name] = err }
	require.NoError(t, p.EachEnd(t.Context(), []string{topic, "missing"}, note))
	require.NoError(t, answers[topic])
	require.Error(t, answers["missing"])
}

// A broker that does not answer costs a timeout per question.
func TestABrokerThatGivesNoEndsHidesNoOther(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.NumBrokers(2))
	topics := []string{kafkatest.Topic(t, brokers, 2), kafkatest.Topic(t, brokers, 2)}
	for _, topic := range topics {
		for node := range int32(2) {
			require.NoError(t, cluster.MoveTopicPartition(topic, node, node))
		}
	}
	var asked atomic.Int32
	cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		isBroken := cluster.CurrentNode() == 1
		if isBroken {
			asked.Add(1)
		}
		return nil, errors.New("cut"), isBroken
	})
	answers := map[string]error{}
	p := newPublisher(t, kafka.Config{Brokers: brokers})
	require.NoError(t, p.EachEnd(t.Context(), topics, func(topic string, number int32, _, _ int64, err error) {
		answers[fmt.Sprint(topic, "/", number)] = err
	}))
	require.Len(t, answers, 4)
	for _, topic := range topics {
		require.NoError(t, answers[topic+"/0"])
		require.ErrorIs(t, answers[topic+"/1"], io.EOF, "the broker closed the connection")
	}
	require.EqualValues(t, 2, asked.Load(), "where the partitions begin and where they end, of all topics together")
}
