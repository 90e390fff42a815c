package eventing_test

import (
	"net"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/eventing"
	"example.com/twinbox/internal/kafkatest"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/internal/service"
)

// The relay records how many partitions a topic has, and does not publish to one with another number: its keys would
// lie in two partitions, and their order would be gone.
func TestTheRelayRefusesAnotherPartitionCount(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	cfg := environ(t, pgtest.DSN(pool), kafkatest.Brokers(t)[0])
	written, missing := kafkatest.Group(t), kafkatest.Group(t)
	ensureTopic(t, cfg, written)
	topics := cfg.Topics(written, missing)
	start := func(*service.Group, net.Listener) {}
	at := eventing.Listeners{Admin: "127.0.0.1:0"}

	b := open(t, cfg, topics...)
	_, ended := b.run(at, start)
	require.Eventually(t, func() bool {
		var partitions int32
		err := pool.QueryRow(t.Context(), `select partitions from public.outbox_topic where topic = $1`, written).
			Scan(&partitions)
		return err == nil && partitions == cfg.Kafka.Partitions
	}, patience, pollEvery, "a topic that does not exist yet is no error")
	b.stop()
	require.NoError(t, <-ended)

	_, err := pool.Exec(t.Context(), `update public.outbox_topic set partitions = 99 where topic = $1`, written)
	require.NoError(t, err)
	_, ended = open(t, cfg, topics...).run(at, start)
	err = <-ended
	require.ErrorContains(t, err, "partition")
	requireExitCode(t, service.ExitUsage, err)
}

// A topic that takes less than the largest event would park the key of every event in between.
func TestATopicForSmallerEventsIsRefused(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_MAX_EVENT_BYTES=20001")
	settings := sarama.NewConfig()
	settings.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin(brokers, settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	topic, limit := kafkatest.Group(t), "20000"
	require.NoError(t, admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: cfg.Kafka.Partitions, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"max.message.bytes": &limit},
	}, false))
	_, ended := open(t, cfg, cfg.Topics(topic, kafkatest.Group(t))...).
		run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(*service.Group, net.Listener) {})
	err = <-ended
	require.ErrorContains(t, err, "max_event_bytes: "+topic+" takes 20000 bytes, an event may have 20001")
	requireExitCode(t, service.ExitUsage, err)
}
