package consumer

import "github.com/IBM/sarama"

// watchedStrategy tells the member when it is about to join, and of its new assignment before sarama takes partitions
// away from it.
//
// sarama itself announces a revocation only by closing the claim's channel of records, behind the records that are
// buffered in it. A partition whose window is full does not read that channel, so it would learn of the loss when its
// handler is done, while the whole group waits.
type watchedStrategy struct {
	cooperative
	joining  func()
	assigned func(partitions map[string][]int32)
}

// cooperative is everything that sarama looks for in a cooperative strategy.
type cooperative interface {
	sarama.RebalanceProtocolBalanceStrategy
	sarama.SubscriptionUserDataBalanceStrategy
	sarama.OnAssignmentBalanceStrategy
}

// watch replaces the strategies of cfg by watched ones.
func watch(cfg *sarama.Config, joining func(), assigned func(map[string][]int32)) {
	strategies := cfg.Consumer.Group.Rebalance.GroupStrategies
	for i, strategy := range strategies {
		strategies[i] = watchedStrategy{strategy.(cooperative), joining, assigned}
	}
}

// SubscriptionUserData implements [sarama.SubscriptionUserDataBalanceStrategy]: sarama asks for it to join with.
func (s watchedStrategy) SubscriptionUserData(topics []string) ([]byte, error) {
	s.joining()
	return s.cooperative.SubscriptionUserData(topics)
}

// OnAssignment implements [sarama.OnAssignmentBalanceStrategy].
func (s watchedStrategy) OnAssignment(assignment *sarama.ConsumerGroupMemberAssignment, generation int32) {
	s.cooperative.OnAssignment(assignment, generation)
	s.assigned(assignment.Topics)
}
