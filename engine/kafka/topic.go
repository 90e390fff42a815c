package kafka

import "time"

// Topic is a topic as it should be.
type Topic struct {
	Name       string
	Partitions int32
	// Retention is how long records are kept; negative: for ever; 0: the broker's default.
	Retention time.Duration
	// ReplicationFactor; 0 is 1, which only a development cluster should have.
	ReplicationFactor int16
}
