package consumer

import (
	"fmt"
	"time"

	"example.com/twinbox/engine/failure"
	_ "example.com/twinbox/engine/failure/kafkaerrors" // what a broker's errors mean
)

func (p *partition) stall(now time.Time) *StallError {
	stuck, reason := p.progress.Stalled(now, p.member.cfg.HandlerLimit)
	if stuck <= 0 {
		return nil
	}
	return &StallError{
		Group: p.member.cfg.Group, Topic: p.at.Topic, Partition: p.at.Partition, For: stuck, Reason: reason,
	}
}

// stopIfStalled ends the whole membership: the process is to be started again.
func (p *partition) stopIfStalled() {
	now := p.member.cfg.Now()
	if stall := p.stall(now); stall != nil && stall.For > p.member.cfg.StopAfter {
		p.member.stop(stall)
	}
}

// healthy reports a stall, a handler that keeps failing, and a broker that gives nothing to read. The last two never
// end the membership: what the handler needs is down, or a right is missing, and starting again would not help.
func (p *partition) healthy() error {
	now, patience := p.member.cfg.Now(), p.member.cfg.FailingAfter
	if stall := p.stall(now); stall != nil && stall.For > p.member.cfg.UnhealthyAfter {
		return stall
	}
	if failing, err := p.progress.Failed(now); err != nil && failing > patience {
		return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", p.at.Topic, p.at.Partition,
			failing.Round(time.Millisecond), err)
	}
	if shut, err := p.progress.Shut(now); err != nil && shut > patience {
		return fmt.Errorf("consume %s/%d: cannot be read for %s: %s: %w", p.at.Topic, p.at.Partition,
			shut.Round(time.Millisecond), failure.Examine(err).Code, err)
	}
	return nil
}
