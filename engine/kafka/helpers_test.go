package kafka_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/dev/kafkatest/kfake"
	"example.com/twinbox/dev/leaktest"
	"example.com/twinbox/dev/porttest"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka"
)

// TestMain also is the program of the processes that tests kill.
func TestMain(m *testing.M) {
	if os.Getenv(childBrokers) != "" {
		beAMember()
		return
	}
	// A message that comes again when a test of Watermill's suite has read enough: its multiplier hands it to nobody.
	const multiplier = "github.com/ThreeDotsLabs/watermill/internal/subscriber.(*multiplier).Subscribe"
	kafkatest.Main(m, leaktest.Known(multiplier+".func2"), leaktest.Known(multiplier+".func3"))
}

var quiet = slog.New(slog.DiscardHandler)

func newPublisher(t testing.TB, cfg kafka.Config) *kafka.Publisher {
	t.Helper()
	publisher, err := kafka.NewPublisher(cfg, quiet)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	return publisher
}

// event is a message with the key and a UUID that says which one of the key it is.
func event(key string, n int) *message.Message {
	return cloudevent.Event{
		ID:      fmt.Sprintf("%s-%d", key, n),
		Source:  "/test",
		Type:    "com.example.test.v1",
		Key:     key,
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Version: int64(n),
		Data:    []byte(fmt.Sprintf(`{"n":%d}`, n)),
	}.Message()
}

// events are n messages, round robin over the keys.
func events(n int, keys ...string) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = event(keys[i%len(keys)], i/len(keys)+1)
	}
	return msgs
}

func keys(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("key-%03d", i)
	}
	return names
}

// restartable returns how to start an in-process broker, and to start it again once it is closed: where the last one
// listened, on its data.
func restartable(t testing.TB) (start func() (*kfake.Cluster, []string)) {
	t.Helper()
	_, port, err := net.SplitHostPort(porttest.Reserve(t))
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	dir := t.TempDir()
	return func() (*kfake.Cluster, []string) { return kafkatest.Fake(t, kfake.DataDir(dir), kfake.Ports(number)) }
}
