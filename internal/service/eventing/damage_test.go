package eventing_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

// A batch on the log that cannot be unpacked becomes a dead letter, and the events behind it are handled.
func TestADamagedBatchEndsInTheDeadLetters(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	brokers := kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], kafkatest.OnBatchEdge, "KAFKA_TOPIC_PARTITIONS=1")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	settings := kafka.Config{Brokers: brokers}.Producer()
	settings.Producer.Compression, settings.Producer.MaxMessageBytes = sarama.CompressionZSTD, 80<<20
	plain, err := sarama.NewSyncProducer(brokers, settings)
	require.NoError(t, err)
	bomb := sarama.ByteEncoder(make([]byte, 65<<20)) // a few kilobytes on the log
	_, _, err = plain.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: bomb})
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	publisher := kafkatest.NewSender(t, brokers)
	require.NoError(t, publisher.Publish(topic, cloudevent.Event{
		ID: "behind", Source: "/test", Type: "test.pinged.v1", Key: "k", Version: 1, Time: time.Now(),
		Data: []byte(`{"n":1}`),
	}.Message()))
	require.NoError(t, publisher.Close())

	b := open(t, cfg)
	handled, mux := make(chan int, 10), inbox.NewMux()
	inbox.Handle(mux, pingedEvent, func(_ context.Context, _ pgx.Tx, _ cloudevent.Event, data pinged) error {
		handled <- data.N
		return nil
	})
	require.NoError(t, b.node.Consume(eventing.Consumer{Name: "test.damage", Topic: topic, Handlers: mux}))
	_, ended := b.run(eventing.Listeners{Admin: "127.0.0.1:0"}, func(group *service.Group, _ net.Listener) {
		b.node.StartConsumers(group)
	})
	select {
	case n := <-handled:
		require.Equal(t, 1, n)
	case <-time.After(patience):
		require.FailNow(t, "the event behind the batch did not come")
	}
	letters, err := deadLetters(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "unreadable", letters[0].Code)
	require.Contains(t, letters[0].Error, "offsets 0 to 0")
	require.Contains(t, string(letters[0].Payload), "\x28\xb5\x2f\xfd", "what lies there: zstd")
	b.stop()
	require.NoError(t, <-ended)
}
