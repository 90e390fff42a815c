package kafka_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// murmur2Vectors are from the unit tests of Kafka's Java client.
var murmur2Vectors = map[string]int32{
	"21":                         -973932308,
	"foobar":                     -790332482,
	"a-little-bit-long-string":   -985981536,
	"a-little-bit-longer-string": -1486304829,
	"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
	"abc": 479470107,
}

func TestKeysGoWhereJavaPutsThem(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	for _, partitions := range []int32{1, 7, 12} {
		topic := kafkatest.Topic(t, brokers, partitions)
		publisher := newPublisher(t, kafka.Config{Brokers: brokers})
		for key := range murmur2Vectors {
			msg := message.NewMessage("", []byte("x"))
			msg.Metadata[event.KeyMetadata] = key
			require.NoError(t, publisher.Publish(topic, msg))
		}
		for _, record := range kafkatest.ReadAll(t, brokers, topic, len(murmur2Vectors)) {
			hash := murmur2Vectors[string(record.Key)]
			require.Equal(t, (hash&0x7fffffff)%partitions, record.Partition, "%s of %d", record.Key, partitions)
		}
	}
}
