package consumer

import (
	"fmt"
	"time"
)

// An OffsetError stops a member: the offset at which the group should go on does not exist. Either the topic's
// retention removed records that were never consumed, or the topic was deleted and created anew since: then it stops
// also when the new one has a record at that offset. Going on at the oldest or newest record would hide that; an
// operator has to say where (kafka-consumer-groups --reset-offsets).
type OffsetError struct {
	Group     string
	Topic     string
	Partition int32
	Err       error
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("consume %s/%d as %s: committed offset does not exist any more: %v", e.Topic, e.Partition, e.Group,
		e.Err)
}

func (e *OffsetError) Unwrap() error { return e.Err }

// A FencedError stops a member: another one runs under its [kafka.GroupConfig.InstanceID]. Coming back would throw that
// one out in turn, for ever.
type FencedError struct {
	Group      string
	InstanceID string
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("consume as %s: another member has taken the instance id %q", e.Group, e.InstanceID)
}

// A StallError stops a member: a partition made no progress for longer than [Config.StopAfter], although there was
// something to do, and nothing in this process is known that would end it.
type StallError struct {
	Group     string
	Topic     string
	Partition int32
	For       time.Duration
	Reason    string
}

func (e *StallError) Error() string {
	return fmt.Sprintf("consume %s/%d as %s: no progress for %s: %s", e.Topic, e.Partition, e.Group,
		e.For.Round(time.Millisecond), e.Reason)
}
