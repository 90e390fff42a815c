package kafka_test

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// BenchmarkPublish compares three publishers with the same settings and bytes: ours, Watermill's, sarama's
// SendMessages.
func BenchmarkPublish(b *testing.B) {
	brokers := kafkatest.Brokers(b)
	cfg := kafka.Config{Brokers: brokers}
	for _, size := range []int{500, 5000} {
		batch := signupEvents(size)
		b.Run(fmt.Sprintf("ours/%d", size), func(b *testing.B) {
			publisher := newPublisher(b, cfg)
			run(b, brokers, batch, publisher.Publish)
		})
		b.Run(fmt.Sprintf("sarama/%d", size), func(b *testing.B) {
			benchSarama(b, cfg.Producer(), brokers, batch)
		})
	}
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionZSTD} {
		b.Run("sarama/5000/"+codec.String(), func(b *testing.B) {
			compressed := cfg.Producer()
			compressed.Producer.Compression = codec
			benchSarama(b, compressed, brokers, signupEvents(5000))
		})
	}
	b.Run("watermill", func(b *testing.B) {
		publisher, err := stock.NewPublisher(stock.PublisherConfig{
			Brokers: brokers, Marshaler: kafka.Marshaler{}, OverwriteSaramaConfig: cfg.Producer(),
		}, watermill.NopLogger{})
		require.NoError(b, err)
		defer func() { require.NoError(b, publisher.Close()) }()
		run(b, brokers, signupEvents(500), publisher.Publish)
	})
}

func benchSarama(b *testing.B, cfg *sarama.Config, brokers []string, batch []*message.Message) {
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	require.NoError(b, err)
	defer func() { require.NoError(b, producer.Close()) }()
	run(b, brokers, batch, func(topic string, msgs ...*message.Message) error {
		records := make([]*sarama.ProducerMessage, len(msgs))
		for i, msg := range msgs {
			records[i], _ = kafka.Marshaler{}.Marshal(topic, msg)
		}
		return producer.SendMessages(records)
	})
}

// run counts an operation per record.
func run(b *testing.B, brokers []string, batch []*message.Message, publish func(string, ...*message.Message) error) {
	topic := kafkatest.Topic(b, brokers, 12)
	require.NoError(b, publish(topic, batch[0])) // connect
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(batch) {
		if err := publish(topic, batch[:min(left, len(batch))]...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
