package outbox

import (
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafkatest"
)

// What the relay expects of a publisher's errors, and what ours for Kafka returns, are one thing.
var (
	_ FailedIndexes = (*kafka.PublishError)(nil)
	_ Permanent     = (*kafka.RecordError)(nil)
)

func newKafkaPublisher(t testing.TB, brokers []string, timeout time.Duration) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(kafka.Config{
		Brokers: brokers, PublishTimeout: timeout, RetryFor: timeout / 4, RequestTimeout: timeout,
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// entries are the records of a topic, each partition in its own order, which is all the order that a key needs.
func entries(t testing.TB, records []*sarama.ConsumerMessage) (wire []entry) {
	t.Helper()
	for _, r := range records {
		e := entry{topic: r.Topic, key: string(r.Key)}
		for _, h := range r.Headers {
			switch string(h.Key) {
			case cloudevent.HeaderID:
				e.id = string(h.Value)
			case cloudevent.HeaderVersion:
				version, err := strconv.ParseInt(string(h.Value), 10, 64)
				require.NoError(t, err)
				e.version = version
			}
		}
		wire = append(wire, e)
	}
	return wire
}

// One partition has no leader for a while, another takes records and says otherwise, and a record is too large for the
// broker: each key is in order, and one is parked.
func TestRelayToKafka(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 4)
	produce := []kmsg.Key{kmsg.Produce}
	cluster.Fault(kfake.Fault{
		Keys: produce, Err: kerr.NotLeaderForPartition, Topic: topic, Partitions: []int32{1}, Count: 5,
	})
	cluster.Fault(kfake.Fault{
		Keys: produce, Err: kerr.NotEnoughReplicasAfterAppend, Topic: topic, Partitions: []int32{2}, Count: 3,
	})
	cfg := testRelayConfig(t, pool, newKafkaPublisher(t, brokers, time.Second))
	cfg.BatchSize = 40
	startRelay(t, cfg)
	for i := range 300 {
		e := event("k" + strconv.Itoa(i%20))
		e.Topic = topic
		commit(t, o, pool, e)
	}
	awaitCaughtUp(t, pool)
	requireAll(t, pool, entries(t, kafkatest.ReadAll(t, brokers, topic, 300)))

	// Past Add, which would refuse it: what only the client or the broker finds too large.
	_, err := pool.Exec(t.Context(), `
		insert into outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
		select gen_random_uuid(), 't', '/test', $1, key, 1, now(), convert_to(repeat('x', size), 'utf8')
		from (values ('large', 2000000), ('small', 10)) as v (key, size)`, topic)
	require.NoError(t, err)
	require.Equal(t, "large", awaitParked(t, pool, 1).Key)
	require.Eventually(t, func() bool {
		return number(t, pool, `select count(*) from outbox_cursor where win is null and head = 302`) == 1
	}, testTimeout, time.Millisecond)
	require.Contains(t, entries(t, kafkatest.ReadAll(t, brokers, topic, 301)), smallOf(t, pool))
}

func smallOf(t testing.TB, pool *pgxpool.Pool) entry {
	t.Helper()
	e := entry{key: "small", version: 1}
	require.NoError(t, pool.QueryRow(t.Context(), `select topic, event_id::text from outbox where key = 'small'`).
		Scan(&e.topic, &e.id))
	return e
}
