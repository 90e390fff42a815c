package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

var errDown = errors.New("database is down")

func TestAHandlerThatKeepsFailingIsUnhealthyAndGoesOn(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Backoff, cfg.UnhealthyAfter = time.Millisecond, 300*time.Millisecond
	r := join(t, cfg, topic)
	receive(t, r.calls).nack(errDown)
	require.NoError(t, r.Healthy(t.Context()), "not at once")
	for !errors.Is(r.Healthy(t.Context()), errDown) {
		receive(t, r.calls).nack(errDown)
	}
	require.Empty(t, r.ended)
	receive(t, r.calls).ack()
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
}

func TestAHandlerThatPausesTellsOfIt(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.UnhealthyAfter = 3 * time.Millisecond
	calls, returned := make(chan context.Context), make(chan struct{})
	r := consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		calls <- ctx
		<-returned
		return len(batch), nil
	}, nil)
	ctx := receive(t, calls)
	handling := func() bool { return !r.Standings()[0].Handling.IsZero() }
	require.True(t, handling())
	resume := kafka.Pausing(ctx, nil)
	require.False(t, handling())
	require.NoError(t, r.Healthy(t.Context()), "waiting is no failure")
	resume()
	require.True(t, handling())
	resume = kafka.Pausing(ctx, errDown)
	testkit.Until(t, func() bool { return errors.Is(r.Healthy(t.Context()), errDown) })
	resume()
	kafka.Pausing(ctx, nil)()
	require.NoError(t, r.Healthy(t.Context()), "another one went well")
	kafka.Pausing(t.Context(), errDown)() // outside a call: no effect
	close(returned)
}

func TestARefusingPartitionIsReported(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic, _ := published(t, brokers, 1)
	refuse(cluster, -1, kerr.KafkaStorageError, kmsg.Fetch)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.UnhealthyAfter = 300 * time.Millisecond
	m := join(t, cfg, topic)
	testkit.Until(t, func() bool {
		err := m.Healthy(t.Context())
		return err != nil && strings.Contains(err.Error(), topic+"/0: cannot be read")
	})
	require.ErrorContains(t, m.Healthy(t.Context()), "kafka_56")
}
