package eventing_test

import (
	"context"
	"fmt"
	"sync"
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
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0])
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	const keys, each = 20, 3
	var mu sync.Mutex
	seen := map[string][]int{}
	start := func() (b *bundle, stop func()) {
		b = open(t, cfg, cfg.Topics(topic)...)
		b.consume(t, eventing.Consumer{
			Name: "test.pings", Topic: topic, Order: inbox.Strict,
			Handlers: pings(func(_ context.Context, _ pgx.Tx, e event.Event, data pinged) error {
				mu.Lock()
				defer mu.Unlock()
				seen[e.Key] = append(seen[e.Key], data.N)
				return nil
			}),
		})
		return b, b.serve(t)
	}
	add := func(b *bundle, n int) {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			for key := range keys {
				_, err := b.node.Outbox.Add(t.Context(), tx, event.Event{
					Type: "test.pinged.v1", Topic: topic, Key: fmt.Sprint(key), Source: "/test",
					Data: fmt.Appendf(nil, `{"n":%d}`, n),
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
	handled := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			all := 0
			for _, events := range seen {
				all += len(events)
			}
			return all >= n*keys
		}
	}

	b, stop := start()
	add(b, 1)
	testkit.Until(t, handled(1))
	require.NoError(t, kafkatest.Admin(t, brokers).CreatePartitions(topic, 2*cfg.Kafka.Partitions, nil, false))
	add(b, 2)
	stop()

	b, stop = start()
	add(b, 3)
	testkit.Until(t, handled(each))
	stop()
	for key, events := range seen {
		require.Equal(t, []int{1, 2, 3}, events, key)
	}
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
