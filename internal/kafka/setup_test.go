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

// TestMain also is the program of the processes that tests kill.
func TestMain(m *testing.M) {
	if os.Getenv(childBrokers) != "" {
		beAMember()
		return
	}
	// A message that comes again when a test of Watermill's suite has read enough: its multiplier has no reader left.
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

// isPermanent is what a relay makes of the error.
func isPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
