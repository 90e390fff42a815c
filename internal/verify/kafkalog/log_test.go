package kafkalog_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/verify/kafkalog"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestALogIsReadPastAllGroups(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, log := kafkatest.Topic(t, brokers, 3), kafkalog.Log{Config: kafka.Config{Brokers: brokers}}
	sent := kafkatest.Event("k", 1)
	sender := kafkatest.NewSender(t, brokers)
	require.NoError(t, sender.Publish(topic, sent))
	require.NoError(t, sender.Close())
	partition, err := log.Place(topic, "k", 3)
	require.NoError(t, err)

	oldest, newest, err := log.Ends(t.Context(), topic)
	require.NoError(t, err)
	ends := make([]int64, 3)
	ends[partition] = 1
	require.Equal(t, make([]int64, 3), oldest)
	require.Equal(t, ends, newest, "the key's partition has the record")
	first, err := log.Since(t.Context(), topic, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, ends, first, "a partition without a later record: its end")
	first, err = log.Since(t.Context(), topic, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, make([]int64, 3), first)
	committed, err := log.Committed(t.Context(), kafkatest.Group(t), topic)
	require.NoError(t, err)
	require.Equal(t, []int64{-1, -1, -1}, committed)

	var read []event.Origin
	next, err := log.Scan(t.Context(), topic, partition, 0, 1, func(m *message.Message) {
		origin, _ := event.OriginFrom(m.Context())
		require.Equal(t, sent.UUID, m.UUID)
		read = append(read, origin)
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, next)
	require.Len(t, read, 1)
	require.Equal(t, partition, read[0].Partition)
}

func TestATopicThatDoesNotExistHoldsNothing(t *testing.T) {
	t.Parallel()
	log := kafkalog.Log{Config: kafka.Config{Brokers: kafkatest.Brokers(t)}}
	oldest, newest, err := log.Ends(t.Context(), "no.such.topic")
	require.NoError(t, err)
	require.Empty(t, oldest)
	require.Empty(t, newest)
	committed, err := log.Committed(t.Context(), kafkatest.Group(t), "no.such.topic")
	require.NoError(t, err)
	require.Empty(t, committed)
}
