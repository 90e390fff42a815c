package kafka_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

var (
	quiet        = slog.New(slog.DiscardHandler)
	event        = kafkatest.Event
	events       = kafkatest.Events
	keys         = kafkatest.Keys
	idsOf        = kafkatest.IDs
	admin        = kafkatest.Admin
	logOf        = kafkatest.LogOf
	sent         = kafkatest.Sent
	requireOrder = kafkatest.RequireOrder
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
