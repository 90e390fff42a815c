package eventing_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// Keys move to other partitions, so an event may come before its predecessor.
func TestAServiceOutlivesMorePartitions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	execute(t, p.pool, `create table seen (n bigserial, key text, version bigint)`)
	const keys = 20
	start := func() (b *bundle, stop func()) {
		b = open(t, p.cfg, p.cfg.Topics(p.topic)...)
		b.consume(t, eventing.Consumer{
			Name: "test.pings", Topic: p.topic, Order: inbox.Strict,
			Handlers: pings(func(ctx context.Context, tx pgx.Tx, e event.Event, _ pinged) error {
				return inbox.Queue(ctx, tx, `insert into seen (key, version) values ($1, $2)`, e.Key, e.Version)
			}),
		})
		return b, b.serve(t)
	}
	add := func(b *bundle) {
		for key := range keys {
			b.add(t, p.topic, fmt.Sprint(key))
		}
	}
	handled := func(want int) func() bool {
		return func() bool {
			var n int
			require.NoError(t, p.pool.QueryRow(t.Context(), `select count(*) from seen`).Scan(&n))
			return n >= want
		}
	}

	b, stop := start()
	add(b)
	testkit.Until(t, handled(keys))
	require.NoError(t, kafkatest.Admin(t, p.brokers).CreatePartitions(p.topic, 2*p.cfg.Kafka.Partitions, nil, false))
	add(b)
	stop()

	b, stop = start()
	add(b)
	testkit.Until(t, handled(3*keys))
	stop()
	var inOrder int
	require.NoError(t, p.pool.QueryRow(t.Context(), `select count(*) from (
		select array_agg(version order by n) as versions from seen group by key) s
		where versions = '{1,2,3}'`).Scan(&inOrder))
	require.Equal(t, keys, inOrder)
}

func TestATopicForSmallerEventsIsRefused(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "OUTBOX_MAX_EVENT_BYTES=20001")
	topic, limit := kafkatest.Group(t), "20000"
	require.NoError(t, kafkatest.Admin(t, brokers).CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: cfg.Kafka.Partitions, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"max.message.bytes": &limit},
	}, false))
	_, ended := open(t, cfg, cfg.Topics(topic, kafkatest.Group(t))...).
		run(service.Listeners{Admin: "127.0.0.1:0"})
	err := <-ended
	require.ErrorContains(t, err, "max_event_bytes: "+topic+" takes 20000 bytes, an event may have 20001")
	requireExitCode(t, service.ExitUsage, err)
}
