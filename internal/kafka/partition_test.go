package kafka_test

import (
	"testing"

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

func TestAfterACrashTheUncommittedComesAgain(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 4)
	cfg := singles(brokers, kafkatest.Group(t))
	m := join(t, cfg, topic)
	require.Equal(t, ids[:2], m.read(t, 2))
	require.Equal(t, ids[2:3], receive(t, m.calls).ids())
	m.close()

	require.Equal(t, ids[2:], join(t, cfg, topic).read(t, 2))
}
