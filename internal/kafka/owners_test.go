package kafka_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestOwnersAndStandings(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, group := kafkatest.Topic(t, brokers, 2), kafkatest.Group(t)
	owners, err := kafka.ReadOwners(t.Context(), kafka.Config{Brokers: brokers}, group, topic)
	require.NoError(t, err)
	require.Empty(t, owners.By, "a group that never was")

	failing, handling := errors.New("no"), make(chan struct{})
	cfg := batches(brokers, group)
	m := consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		if string(batch[0].Payload) == "fails" {
			return 0, failing
		}
		select {
		case <-handling:
		case <-ctx.Done():
		}
		return len(batch), nil
	}, nil)
	testkit.Until(t, func() bool {
		owners, err = kafka.ReadOwners(t.Context(), kafka.Config{Brokers: brokers}, group, topic)
		return err == nil && len(owners.By) == 2
	})
	require.Equal(t, "Stable", owners.State)
	require.Regexp(t, ` at \S*[0-9.:]+$`, owners.By[0])

	toPartition(t, brokers, topic, 0, "fails")
	toPartition(t, brokers, topic, 1, "waits")
	standing := func(partition int32) (found kafka.Standing) {
		for _, s := range m.Standings() {
			if s.Partition == partition {
				found = s
			}
		}
		return found
	}
	testkit.Until(t, func() bool { return errors.Is(standing(0).Failure, failing) && !standing(1).Handling.IsZero() })
	require.NotZero(t, standing(0).Failing)
	require.NoError(t, standing(1).Failure)
	close(handling)
	testkit.Until(t, func() bool { return standing(1).Handling.IsZero() })
	m.close()
	require.Empty(t, m.Standings())
}
