package consumer_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/consumer"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func adminConfig() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Admin.Timeout = kafkatest.Patience
	return cfg
}

// recreate deletes the topic and makes another one of its name, with n records.
func recreate(t testing.TB, brokers []string, topic string, n int) (ids []string) {
	t.Helper()
	cluster := admin(t, brokers)
	require.NoError(t, cluster.DeleteTopic(topic))
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}
	require.EventuallyWithT(t, func(c *assert.CollectT) { // while the old one is being deleted that is refused
		require.NoError(c, cluster.CreateTopic(topic, detail, false))
	}, kafkatest.Patience, 20*time.Millisecond)
	awaitEmpty(t, brokers, topic)
	if n == 0 {
		return nil
	}
	msgs := events(n, "new")
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	require.Len(t, kafkatest.ReadAll(t, brokers, topic, n), n)
	return idsOf(msgs)
}

// awaitEmpty returns when the broker has the new topic, which takes a real one longer than its controller: until then
// it knows none of that name, or takes records for the old one, and they go with it.
func awaitEmpty(t testing.TB, brokers []string, topic string) {
	t.Helper()
	client, err := sarama.NewClient(brokers, adminConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	testkit.Until(t, func() bool {
		end, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
		return err == nil && end == 0
	})
}

// readAndCommitted is a listener that has read five records, and their topic.
func readAndCommitted(t *testing.T, cfg consumer.Config) (*listener, string) {
	t.Helper()
	topic, ids := published(t, cfg.Brokers, 5)
	l := listen(t, cfg, topic)
	require.Equal(t, ids, read(t, l, 5))
	awaitCommit(t, cfg, topic, 5)
	return l, topic
}

func awaitCommit(t *testing.T, cfg consumer.Config, topic string, offset int64) {
	t.Helper()
	testkit.Until(t, func() bool { return committed(t, cfg.Brokers, cfg.Group, topic) == offset })
}

// A topic that is made anew under a running member begins at 0, and the member stands at 5: however many records there
// are by then, it does not go on there as if nothing were missing.
func TestATopicMadeAnewStopsWhoReadsIt(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	for name, n := range map[string]int{"empty": 0, "fewer records": 2, "as many": 5, "more records": 9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fast(brokers, kafkatest.Group(t))
			cfg.LookEvery = 20 * time.Millisecond
			l, topic := readAndCommitted(t, cfg)
			recreate(t, brokers, topic, n)
			err := receive(t, l.ended)
			require.ErrorIs(t, err, consumer.ErrOffsetGone)
			require.ErrorContains(t, err, topic)
			require.ErrorIs(t, l.Healthy(t.Context()), err)
		})
	}
}

// An offset says of which topic it is: a member that noticed too late leaves none behind with which its successor would
// skip the beginning. Without the offset that one reads from the oldest record.
func TestAnOffsetOfTheTopicBeforeIsRefused(t *testing.T) {
	t.Parallel()
	cfg := fast(kafkatest.Brokers(t), kafkatest.Group(t))
	l, topic := readAndCommitted(t, cfg)
	require.NoError(t, l.Close())
	answer, err := admin(t, cfg.Brokers).ListConsumerGroupOffsets(cfg.Group, map[string][]int32{topic: {0}})
	require.NoError(t, err)
	noted := answer.GetBlock(topic, 0).Metadata
	ids := recreate(t, cfg.Brokers, topic, 9)
	awaitCommit(t, cfg, topic, -1) // the broker forgets what was committed for the old one
	commit(t, cfg, topic, 7, noted)

	for range 2 { // started again and again, it says the same
		l = listen(t, cfg, topic)
		err := receive(t, l.ended)
		require.ErrorIs(t, err, consumer.ErrOffsetGone)
		require.ErrorContains(t, err, "deleted and created anew")
		require.NoError(t, l.Close())
	}
	require.NoError(t, admin(t, cfg.Brokers).DeleteConsumerGroupOffset(cfg.Group, topic, 0))
	require.Equal(t, ids, read(t, listen(t, cfg, topic), len(ids)))
}

// An operator's tool commits offsets with nothing beside them, and a client that had the group before with a note of
// its own, often its member id. Neither says that it is another topic's, and both are believed.
func TestAnOffsetThatDoesNotSayItsTopicIsTaken(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	for name, noted := range map[string]string{"nothing": "", "a note of another client": "kgo-1-0e4d"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fast(brokers, kafkatest.Group(t))
			l, topic := readAndCommitted(t, cfg)
			require.NoError(t, l.Close())
			msgs := events(5, "b")
			require.NoError(t, newPublisher(t, kafka.Config{Brokers: cfg.Brokers}).Publish(topic, msgs...))
			commit(t, cfg, topic, 7, noted)
			require.Equal(t, idsOf(msgs[2:]), read(t, listen(t, cfg, topic), 3))
		})
	}
}

// commit sets the group's offset from outside.
func commit(t *testing.T, cfg consumer.Config, topic string, offset int64, metadata string) {
	t.Helper()
	settings := sarama.NewConfig()
	settings.Version = sarama.V3_6_0_0
	client, err := sarama.NewClient(cfg.Brokers, settings)
	require.NoError(t, err)
	offsets, err := sarama.NewOffsetManagerFromClient(cfg.Group, client)
	require.NoError(t, err)
	partition, err := offsets.ManagePartition(topic, 0)
	require.NoError(t, err)
	partition.MarkOffset(offset, metadata) // which goes forward alone
	partition.ResetOffset(offset, metadata)
	offsets.Commit()
	require.NoError(t, partition.Close())
	require.NoError(t, offsets.Close())
	require.NoError(t, client.Close())
	require.EqualValues(t, offset, committed(t, cfg.Brokers, cfg.Group, topic))
}

// Between two runs of a member the broker forgets the offsets of a topic that is deleted.
func TestATopicMadeAnewBetweenRunsIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	cfg := fast(kafkatest.Brokers(t), kafkatest.Group(t))
	l, topic := readAndCommitted(t, cfg)
	require.NoError(t, l.Close())
	ids := recreate(t, cfg.Brokers, topic, 9)
	awaitCommit(t, cfg, topic, -1)
	require.Equal(t, ids, read(t, listen(t, cfg, topic), len(ids)))
}
