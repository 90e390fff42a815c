package producer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	kafkaadmin "example.com/twinbox/internal/kafka/admin"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// A topic gets more partitions: every key stays where it was until the publisher is told to spread it anew.
func TestKeysStayInTheirPartitionsUntilTheyAreSpreadAnew(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 3)
	before, after := newPublisher(t, kafka.Config{Brokers: brokers}), newPublisher(t, kafka.Config{Brokers: brokers})
	before.SpreadKeys(map[string]int32{topic: 3})
	after.SpreadKeys(map[string]int32{topic: 3, "other": 1})
	msgs := events(60, keys(20)...)
	require.NoError(t, before.Publish(topic, msgs[:20]...))
	require.NoError(t, admin(t, brokers).CreatePartitions(topic, 12, nil, false))
	testkit.Until(t, func() bool {
		counts, err := kafkaadmin.PartitionCounts(t.Context(), kafka.Config{Brokers: brokers}, topic)
		if err != nil || counts[topic] != 12 {
			return false
		}
		_, err = kafkaadmin.GroupsBehind(t.Context(), kafka.Config{Brokers: brokers}, topic) // asks every partition's leader
		return err == nil
	})

	require.NoError(t, after.Publish(topic, msgs[20:40]...), "its first look at the topic shows it 12 partitions")
	for _, record := range kafkatest.ReadAll(t, brokers, topic, 40) {
		require.Less(t, record.Partition, int32(3))
	}
	require.Equal(t, sent(msgs[:40]...), logOf(t, brokers, topic, 40))

	before.SpreadKeys(map[string]int32{topic: 12})
	require.NoError(t, before.Publish(topic, msgs[40:]...), "it has seen the topic with 3 partitions only")
	used := map[int32]bool{}
	for _, record := range kafkatest.ReadAll(t, brokers, topic, 60) {
		used[record.Partition] = true
	}
	require.Greater(t, len(used), 3)

	after.SpreadKeys(map[string]int32{topic: 13})
	err := after.Publish(topic, msgs[0])
	require.ErrorContains(t, err, "has 12 partitions, its keys are spread over 13")
	require.NotEmpty(t, failures(t, err), "and may be repeated")
}
