package kafka_test

import (
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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
	quiet    = slog.New(slog.DiscardHandler)
	newEvent = kafkatest.Event
	admin    = kafkatest.Admin
)

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
