package consumer

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

// TestStrategyTellsOfRevocations: a partition whose handler is busy, which reads no records, still learns that it goes.
func TestStrategyTellsOfRevocations(t *testing.T) {
	t.Parallel()
	var told map[string][]int32
	joins := 0
	cfg := kafka.GroupConfig{Config: kafka.Config{Brokers: []string{"a:1"}}, Group: "g"}.Consumer()
	watch(cfg, func() { joins++ }, func(topics map[string][]int32) { told = topics })
	require.NoError(t, cfg.Validate(), "sarama still knows it for a cooperative strategy")
	strategy, ok := cfg.Consumer.Group.Rebalance.GroupStrategies[0].(sarama.OnAssignmentBalanceStrategy)
	require.True(t, ok)
	require.Equal(t, sarama.CooperativeStickyBalanceStrategyName, strategy.Name())
	_, err := cfg.Consumer.Group.Rebalance.GroupStrategies[0].(sarama.SubscriptionUserDataBalanceStrategy).
		SubscriptionUserData([]string{"t"})
	require.NoError(t, err)
	require.Equal(t, 1, joins)
	require.Nil(t, told)
	strategy.OnAssignment(&sarama.ConsumerGroupMemberAssignment{Topics: map[string][]int32{"t": {1}}}, 1)
	require.Equal(t, map[string][]int32{"t": {1}}, told)

	m := quick(1, 0)
	defer m.cancel()
	kept, gone := &partition{}, &partition{}
	var revoked []string
	kept.leave = func(error) { revoked = append(revoked, "kept") }
	gone.leave = func(error) { revoked = append(revoked, "gone") }
	m.partitions[1] = kept
	m.partitions[2] = gone
	m.assigned(told)
	require.Equal(t, []string{"gone"}, revoked)
}
