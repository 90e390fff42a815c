package kafkatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// NewPublisher returns a publisher that writes to topics without an outbox. Close it.
func NewPublisher(t testing.TB, brokers []string) *kafka.Publisher {
	t.Helper()
	publisher, err := kafka.NewPublisher(kafka.Config{Brokers: brokers}, nil)
	require.NoError(t, err)
	return publisher
}

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
