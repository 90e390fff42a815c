package kafka_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// TestMain is also the program of the processes that tests kill.
func TestMain(m *testing.M) {
	if os.Getenv(childBrokers) != "" {
		beAMember()
		return
	}
	// Watermill's suite leaves this goroutine behind: when it has read enough, the multiplier has no reader.
	const multiplier = "github.com/ThreeDotsLabs/watermill/internal/subscriber.(*multiplier).Subscribe"
	kafkatest.Main(m, goleak.IgnoreAnyFunction(multiplier+".func2"), goleak.IgnoreAnyFunction(multiplier+".func3"))
}

var (
	quiet = slog.New(slog.DiscardHandler)
	admin = kafkatest.Admin
)

// newEvent returns the nth message of a key, with the id key-n.
func newEvent(key string, n int) *message.Message {
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

func newPublisher(t testing.TB, cfg kafka.Config) *kafka.Publisher {
	t.Helper()
	publisher, err := kafka.NewPublisher(cfg, quiet)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	return publisher
}

func isPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
