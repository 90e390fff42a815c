package admin_test

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// publish sends one record to the topic.
func publish(t testing.TB, cfg kafka.Config, topic string) error {
	t.Helper()
	sender, err := sarama.NewSyncProducer(cfg.Brokers, cfg.Producer())
	require.NoError(t, err)
	defer func() { require.NoError(t, sender.Close()) }()
	_, _, err = sender.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("a")})
	return err
}
