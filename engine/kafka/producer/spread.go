package producer

import (
	"fmt"
	"sync/atomic"
)

// spread is over how many partitions the keys of a topic are spread, where that is not simply as many as there are.
type spread struct {
	counts atomic.Pointer[map[string]int32]
}

// SpreadKeys sets over how many partitions the keys of each topic are spread from the next request on; other topics'
// keys are spread over all partitions there are. Partitions that are added to a topic then stay empty until it is
// called again with the new count, and each key stays where its earlier events are. Records of a topic that has fewer
// partitions than that are not sent: their calls fail, and may be repeated.
func (p *Publisher) SpreadKeys(topics map[string]int32) { p.spread.counts.Store(&topics) }

// among returns those of a topic's partitions, which are in their order, that keys may go to.
func (s *spread) among(topic string, partitions []int32) ([]int32, error) {
	counts := s.counts.Load()
	if counts == nil {
		return partitions, nil
	}
	want, set := (*counts)[topic]
	switch {
	case !set:
		return partitions, nil
	case int(want) > len(partitions):
		return nil, fmt.Errorf("topic %s has %d partitions, its keys are spread over %d", topic, len(partitions), want)
	}
	return partitions[:want], nil
}
