package eventing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

const repeatedConsumer = "test.repeated"

func outcomesOf(t *testing.T, cfg eventing.Config, topic string, n int) map[inbox.Outcome]int {
	t.Helper()
	b := open(t, cfg)
	outcomes := make(chan inbox.Outcome, 100)
	b.consume(t, eventing.Consumer{
		Name: repeatedConsumer, Topic: topic, Order: inbox.Strict,
		Handlers: pings(func(_ context.Context, _ pgx.Tx, _ event.Event, data pinged) error {
			if data.N == 13 {
				return inbox.Permanent(errors.New("refused"))
			}
			return nil
		}),
		OnOutcome: func(_ event.Event, o inbox.Outcome) { outcomes <- o },
	})
	stop := b.serve(t)
	seen := map[inbox.Outcome]int{}
	for range n {
		select {
		case o := <-outcomes:
			seen[o]++
		case <-time.After(patience):
			require.FailNow(t, "the partition stands", "%v", seen)
		}
	}
	waitForCommit(t, cfg, topic)
	stop()
	require.Empty(t, outcomes)
	return seen
}

func waitForCommit(t *testing.T, cfg eventing.Config, topic string) {
	t.Helper()
	client, err := sarama.NewClient(cfg.Kafka.Brokers, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	end, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
	require.NoError(t, err)
	admin, group := kafkatest.Admin(t, cfg.Kafka.Brokers), groupOf(cfg)
	testkit.Until(t, func() bool {
		offsets, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		return err == nil && offsets.GetBlock(topic, 0).Offset == end
	}, "the group commits")
}

func groupOf(cfg eventing.Config) string {
	return "twinbox." + cfg.Environment + "." + repeatedConsumer
}

// The producer has forgotten the batch's number.
func TestABatchThatComesAgain(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "KAFKA_TOPIC_PARTITIONS=1")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	at, batch := time.Now(), []*sarama.ProducerMessage{}
	for _, row := range []struct {
		id, key, data string
		version       int64
	}{
		{"a/1", "a", `{"n":1}`, 1},
		{"b/1", "b", `{"n":1}`, 1},
		{"a/2", "a", `{"n":2}`, 2},
		{"b/2", "b", `{"n":13}`, 2}, // refused, and the next one of its key waits
		{"b/3", "b", `{"n":3}`, 3},
	} {
		record, err := kafka.Marshaler{}.Marshal(topic, event.Event{
			ID: row.id, Source: "/test", Type: "test.pinged.v1", Key: row.key, Version: row.version, Time: at,
			Data: []byte(row.data),
		}.Message())
		require.NoError(t, err)
		batch = append(batch, record)
	}
	batch = append(batch, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("no event")})
	letters := func() (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from dead_letter`).Scan(&n))
		return n
	}

	sendRaw(t, brokers, batch...)
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 3, inbox.Dead: 2, inbox.Parked: 1},
		outcomesOf(t, cfg, topic, 6))
	require.Equal(t, 3, letters())

	sendRaw(t, brokers, batch...)
	require.Equal(t, map[inbox.Outcome]int{inbox.Duplicate: 5, inbox.Dead: 1}, outcomesOf(t, cfg, topic, 6))
	require.Equal(t, 4, letters())

	require.NoError(t, kafkatest.Admin(t, brokers).DeleteConsumerGroup(groupOf(cfg)))
	require.Equal(t, map[inbox.Outcome]int{inbox.Duplicate: 10, inbox.Dead: 2}, outcomesOf(t, cfg, topic, 12))
	require.Equal(t, 4, letters())
}

// Records name no environment: on a shared topic each applies the other's events.
func TestEnvironmentsShareTopicsButNoGroups(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Group(t)
	blue := environ(t, pgtest.DSN(pgtest.New(t, sets...)), brokers[0], "KAFKA_TOPIC_PARTITIONS=1")
	green := environ(t, pgtest.DSN(pgtest.New(t, sets...)), brokers[0])
	require.NotEqual(t, blue.Environment, green.Environment)
	ensureTopic(t, blue, topic)
	for _, cfg := range []eventing.Config{blue, green} {
		record, err := kafka.Marshaler{}.Marshal(topic, event.Event{
			ID: "of " + cfg.Environment, Source: "/test", Type: "test.pinged.v1", Key: cfg.Environment, Version: 1,
			Time: time.Now(), Data: []byte(`{"n":1}`),
		}.Message())
		require.NoError(t, err)
		sendRaw(t, brokers, record)
	}
	for _, cfg := range []eventing.Config{blue, green} {
		require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 2}, outcomesOf(t, cfg, topic, 2))
	}
}
