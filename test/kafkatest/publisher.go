package kafkatest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// Sender is a [message.Publisher] that writes to topics without an outbox.
type Sender struct{ to sarama.SyncProducer }

// NewSender connects a sender. Close it.
func NewSender(t testing.TB, brokers []string) *Sender {
	t.Helper()
	to, err := sarama.NewSyncProducer(brokers, kafka.Config{Brokers: brokers}.Producer())
	require.NoError(t, err)
	return &Sender{to}
}

// Publish returns when all messages are acknowledged, or an error.
func (s *Sender) Publish(topic string, msgs ...*message.Message) error {
	return s.PublishContext(context.Background(), topic, msgs...)
}

// PublishContext is Publish that does not begin after the end of ctx.
func (s *Sender) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	records := make([]*sarama.ProducerMessage, len(msgs))
	for i, msg := range msgs {
		var err error
		if records[i], err = (kafka.Marshaler{}).Marshal(topic, msg); err != nil {
			return err
		}
	}
	return s.to.SendMessages(records)
}

// Close ends the connections.
func (s *Sender) Close() error { return s.to.Close() }

// Event returns the nth message of a key, with the id key-n.
func Event(key string, n int) *message.Message {
	return event.Event{
		ID:      fmt.Sprintf("%s-%d", key, n),
		Source:  "/test",
		Type:    "com.example.test.v1",
		Key:     key,
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Version: int64(n),
		Data:    []byte(fmt.Sprintf(`{"n":%d}`, n)),
	}.Message()
}
