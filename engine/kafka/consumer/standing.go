package consumer

import "example.com/twinbox/engine/kafka/progress"

// Standings are those of the partitions that this member owns, in no order.
func (c *Consumer) Standings() []progress.Standing {
	m := c.member.Load()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	standings := make([]progress.Standing, 0, len(m.partitions))
	for _, p := range m.partitions {
		standings = append(standings, p.standing())
	}
	return standings
}

func (p *partition) standing() progress.Standing {
	s := p.progress.Standing()
	s.Topic, s.Partition = p.at.Topic, p.at.Partition
	return s
}
