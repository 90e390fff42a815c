package kafkatest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/testkit"
)

// Topic creates a topic for one test, whose partitions all have a leader.
func Topic(t testing.TB, brokers []string, partitions int32) string {
	t.Helper()
	name := Group(t)
	cfg := kafka.Config{Brokers: brokers, RequestTimeout: Patience}
	require.NoError(t, kafka.EnsureTopics(t.Context(), cfg, kafka.Topic{Name: name, Partitions: partitions}))
	return name
}

// Admin returns a connection for other needs.
func Admin(t testing.TB, brokers []string) sarama.ClusterAdmin {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(brokers, config())
	require.NoError(t, err, "connect to broker")
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	return admin
}

// ReadAll waits until the topic holds at least n records, then returns all of them, ordered by partition and offset.
func ReadAll(t testing.TB, brokers []string, topic string, n int) []*sarama.ConsumerMessage {
	t.Helper()
	client, err := sarama.NewClient(brokers, config())
	require.NoError(t, err, "connect to broker")
	defer func() { require.NoError(t, client.Close()) }()
	ends := waitForRecords(t, client, topic, n)
	consumer, err := sarama.NewConsumerFromClient(client)
	require.NoError(t, err)
	defer func() { require.NoError(t, consumer.Close()) }()

	var records []*sarama.ConsumerMessage
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		records = append(records, readPartition(t, consumer, topic, partition, ends[partition])...)
	}
	return records
}

// waitForRecords returns the offsets after the last records. Empty partitions are missing.
func waitForRecords(t testing.TB, client sarama.Client, topic string, n int) (ends map[int32]int64) {
	t.Helper()
	partitions, err := client.Partitions(topic)
	require.NoError(t, err, "list partitions")
	testkit.Until(t, func() bool {
		var total int64
		ends = map[int32]int64{}
		for _, partition := range partitions {
			oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
			require.NoError(t, err, "read oldest offset")
			newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			require.NoError(t, err, "read newest offset")
			if newest > oldest {
				ends[partition] = newest
			}
			total += newest - oldest
		}
		return total >= int64(n)
	}, "%s has less than %d records", topic, n)
	return ends
}

func readPartition(
	t testing.TB, c sarama.Consumer, topic string, partition int32, end int64,
) []*sarama.ConsumerMessage {
	t.Helper()
	reader, err := c.ConsumePartition(topic, partition, sarama.OffsetOldest)
	require.NoError(t, err, "read partition")
	defer func() { require.NoError(t, reader.Close()) }()
	timeout := time.After(Patience)
	var records []*sarama.ConsumerMessage
	for {
		select {
		case record := <-reader.Messages():
			records = append(records, record)
			if record.Offset >= end-1 {
				return records
			}
		case <-timeout:
			require.FailNow(t, "partition not readable to its end", "partition %d, %d records", partition, len(records))
		}
	}
}

// NewPublisher returns a publisher that writes to topics without an outbox. Close it.
func NewPublisher(t testing.TB, brokers []string) *kafka.Publisher {
	t.Helper()
	publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
	require.NoError(t, err)
	return publisher
}

// config has no settings that the tests of package kafka check.
func config() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.ClientID = "kafkatest"
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.MaxWaitTime = 20 * time.Millisecond
	cfg.Admin.Timeout = Patience // else the broker gives a request up after 3 s, and may have done it all the same
	return cfg
}
