package eventing_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

var onWatermill = kafkatest.Setting("watermill")

func rows(t *testing.T, pool *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

func pingRecord(t *testing.T, topic string, version int64) *sarama.ProducerMessage {
	t.Helper()
	record, err := kafka.Marshaler{}.Marshal(topic, cloudevent.Event{
		ID: fmt.Sprintf("a/%d", version), Source: "/test", Type: "test.pinged.v1", Key: "a", Version: version,
		Time: time.Now(), Data: []byte(`{"n":1}`),
	}.Message())
	require.NoError(t, err)
	return record
}

// What follows is what Watermill's edge does not promise, or promises less of; docs/from-watermill.md has the list.

// The Router's context ends with the process, and the handlers under way with it. They come again.
func TestOnWatermillsEdgeAStopCancelsHandlers(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], onWatermill, "KAFKA_TOPIC_PARTITIONS=1")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	sendRaw(t, brokers, pingRecord(t, topic, 1))
	began := make(chan struct{})
	b, mux := open(t, cfg), inbox.NewMux()
	inbox.Handle(mux, pingedEvent, func(ctx context.Context, _ pgx.Tx, _ cloudevent.Event, _ pinged) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, b.node.Consume(eventing.Consumer{Name: repeatedConsumer, Topic: topic, Handlers: mux}))
	_, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(group *service.Group, _ net.Listener) {
		b.node.StartConsumers(group)
	})
	<-began
	b.stop()
	require.NoError(t, <-ended)
	require.Zero(t, rows(t, pool, `select count(*) from inbox`))
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 1}, outcomesOf(t, cfg, topic, 1))
}

// watermill-kafka hands over no headers, only metadata: a name once, in no order, and nothing that is null.
func TestOnWatermillsEdgeALetterHasItsHeadersByName(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], onWatermill, "KAFKA_TOPIC_PARTITIONS=1")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	sendRaw(t, brokers, &sarama.ProducerMessage{
		Topic: topic, Value: sarama.StringEncoder("not an event"), Headers: []sarama.RecordHeader{
			{Key: []byte("b"), Value: []byte("1")}, {Key: []byte("b"), Value: []byte("2")}, {Key: []byte("a")},
		},
	})
	require.Equal(t, map[inbox.Outcome]int{inbox.Dead: 1}, outcomesOf(t, cfg, topic, 1))
	letters, err := deadLetters(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, []deadletter.Header{{Name: "a", Value: []byte{}}, {Name: "b", Value: []byte("2")}},
		letters[0].Headers)
	require.Equal(t, topic, letters[0].Topic)
	require.Equal(t, "twinbox."+cfg.Environment+"."+repeatedConsumer, letters[0].Group)
}
