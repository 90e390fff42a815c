package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func published(t testing.TB, brokers []string, n int) (topic string, ids []string) {
	t.Helper()
	topic = kafkatest.Topic(t, brokers, 1)
	msgs := events(n, "a")
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	return topic, idsOf(msgs)
}

// committed returns -1 if the group has no offset.
func committed(t testing.TB, brokers []string, group, topic string) int64 {
	t.Helper()
	return committedOf(t, brokers, group, topic, 0)
}

func committedOf(t testing.TB, brokers []string, group, topic string, partition int32) int64 {
	t.Helper()
	answer, err := admin(t, brokers).ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	require.NoError(t, err)
	return answer.GetBlock(topic, partition).Offset
}

func silent(t testing.TB, l *listener) {
	t.Helper()
	select {
	case msg, ok := <-l.messages:
		require.False(t, ok, "message handed out: %v", msg)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestAfterACrashTheUncommittedComesAgain(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 4)
	cfg := fast(brokers, kafkatest.Group(t))
	l := listen(t, cfg, topic)
	require.Equal(t, ids[:2], read(t, l, 2))
	left := receive(t, l.messages)
	require.Equal(t, ids[2], left.UUID)
	left.Nack()
	require.NoError(t, l.Close())

	require.Equal(t, ids[2:], read(t, listen(t, cfg, topic), 2))
}
