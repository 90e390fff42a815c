package kafkatest_test

import (
	"regexp"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestReadAllReturnsWhatIsThereInOrder(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 2)
	require.Empty(t, kafkatest.ReadAll(t, brokers, topic, 0))

	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	require.NoError(t, err)
	for _, partition := range []int32{1, 0, 1} {
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: partition})
		require.NoError(t, err)
	}
	require.NoError(t, producer.Close())

	records := kafkatest.ReadAll(t, brokers, topic, 1)
	require.Len(t, records, 3, "all, not only the number waited for")
	for i, want := range [][2]int64{{0, 0}, {1, 0}, {1, 1}} {
		require.Equal(t, want, [2]int64{int64(records[i].Partition), records[i].Offset})
	}
}

func TestNamesAreFreshAndLegal(t *testing.T) {
	t.Parallel()
	t.Run("with / and spaces, ümlauts and a name that is far longer than any sensible test would have, because it goes "+
		"on and on and on", func(t *testing.T) {
		t.Parallel()
		a, b := kafkatest.Group(t), kafkatest.Group(t)
		require.NotEqual(t, a, b)
		require.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`), a)
	})
}
