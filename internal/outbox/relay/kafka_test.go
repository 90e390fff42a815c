package relay

import (
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

var _ FailedIndexes = (*kafka.PublishError)(nil)

func newKafkaPublisher(t testing.TB, brokers []string, timeout time.Duration) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(kafka.Config{
		Brokers: brokers, PublishTimeout: timeout, RetryFor: timeout / 4, RequestTimeout: timeout,
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func entries(t testing.TB, records []*sarama.ConsumerMessage) (wire []entry) {
	t.Helper()
	for _, r := range records {
		e := entry{Topic: r.Topic, Key: string(r.Key)}
		for _, h := range r.Headers {
			switch string(h.Key) {
			case event.HeaderID:
				e.ID = string(h.Value)
			case event.HeaderVersion:
				version, err := strconv.ParseInt(string(h.Value), 10, 64)
				require.NoError(t, err)
				e.Version = version
			}
		}
		wire = append(wire, e)
	}
	return wire
}

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
	for i := range 120 {
		e := newEvent("k" + strconv.Itoa(i%20))
		e.Topic = topic
		commit(t, o, pool, e)
	}
	awaitCaughtUp(t, pool)
	requireAll(t, pool, entries(t, kafkatest.ReadAll(t, brokers, topic, 120)))

	// Past Add, which would refuse a record that only the client or the broker finds too large.
	execSQL(t, pool, `
		insert into outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
		select gen_random_uuid(), 't', '/test', $1, key, 1, now(), convert_to(repeat('x', size), 'utf8')
		from (values ('large', 2000000), ('small', 10)) as v (key, size)`, topic)
	awaitCaughtUpBut(t, pool, 1)
	require.Equal(t, "large", awaitParked(t, pool, 1).Key)
	require.Contains(t, entries(t, kafkatest.ReadAll(t, brokers, topic, 121)), smallOf(t, pool))
}

// The mark that ends a transaction is an offset without a record.
func TestAnotherProducersTransactionsStopNothing(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	other := newTransactions(t, brokers)
	cfg := testRelayConfig(t, pool, newKafkaPublisher(t, brokers, testLease/3))
	cfg.Topics, cfg.lookAgain = []string{topic}, time.Millisecond
	for _, end := range []func() error{other.CommitTxn, other.AbortTxn, other.CommitTxn} {
		r := startRelay(t, cfg)
		e := newEvent("k")
		e.Topic = topic
		commit(t, o, pool, e)
		awaitCaughtUp(t, pool)
		r.stop()
		require.NoError(t, other.BeginTxn())
		_, _, err := other.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
		require.NoError(t, err)
		require.NoError(t, end())
	}
}

func newTransactions(t testing.TB, brokers []string) sarama.SyncProducer {
	t.Helper()
	settings := kafka.Config{Brokers: brokers}.Producer()
	settings.Producer.Transaction.ID = kafkatest.Group(t)
	producer, err := sarama.NewSyncProducer(brokers, settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	return producer
}

func TestASlowBrokerParksNoKey(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 2)
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		cluster.SleepControl(func() { <-time.After(80 * time.Millisecond) })
		return nil, nil, false
	})
	r := startRelay(t, testRelayConfig(t, pool, newKafkaPublisher(t, brokers, time.Second)))
	for i := range 12 {
		e := newEvent("k" + strconv.Itoa(i%4))
		e.Topic = topic
		commit(t, o, pool, e)
	}
	awaitCaughtUp(t, pool)
	requireOrder(t, entries(t, kafkatest.ReadAll(t, brokers, topic, 12)))
	require.Zero(t, testutil.ToFloat64(r.metrics.parkings))
	require.InDelta(t, 1, testutil.ToFloat64(r.metrics.epoch), 0)
}

func smallOf(t testing.TB, pool *pgxpool.Pool) entry {
	t.Helper()
	e := entry{Key: "small", Version: 1}
	require.NoError(t, pool.QueryRow(t.Context(), `select topic, event_id::text from outbox where key = 'small'`).
		Scan(&e.Topic, &e.ID))
	return e
}

func TestRelayToAnyBroker(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 4)
	publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers, MaxMessageBytes: 8 << 20}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	cfg := testRelayConfig(t, pool, publisher)
	cfg.BatchSize = 25
	refused := int64(0)
	if kafkatest.IsReal() {
		refused = 1
		addTooLarge(t, pool, topic)
	}
	const rounds, each = 3, 40
	for range rounds {
		r := startRelay(t, cfg)
		for i := range each {
			e := newEvent("k" + strconv.Itoa(i%20))
			e.Topic = topic
			commit(t, o, pool, e)
			if i == each/2 {
				execSQL(t, pool, `select pg_terminate_backend(pid) from pg_stat_activity
					where application_name = 'outbox relay' and datname = current_database()`)
			}
		}
		r.stop()
	}
	startRelay(t, cfg)
	awaitCaughtUpBut(t, pool, refused)
	if refused > 0 {
		require.Equal(t, "large", awaitParked(t, pool, 1).Key)
	}
	wire := entries(t, kafkatest.ReadAll(t, brokers, topic, rounds*each))
	requireOrder(t, wire)
	require.Equal(t, rounds*each, distinct(wire))
}

// addTooLarge adds an event past Add, which would refuse it: two megabytes that do not compress.
func addTooLarge(t testing.TB, pool *pgxpool.Pool, topic string) {
	t.Helper()
	execSQL(t, pool, `
		insert into outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
		select gen_random_uuid(), 't', '/test', $1, 'large', 1, now(),
			convert_to(string_agg(md5(n::text), ''), 'utf8') from generate_series(1, 70000) as n`, topic)
}
