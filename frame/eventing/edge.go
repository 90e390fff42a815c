package eventing

import (
	"context"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/progress"
)

// edge is how a node writes to Kafka and reads from it. The rest is the same for each
// edge: outbox and relay, inbox, handlers and their middlewares. Replicas of a service
// may have different ones while it is changed over.
type edge struct {
	// publisher is what the relay publishes through. It connects on first use.
	publisher func(kafka.Config, *slog.Logger) (message.Publisher, error)
	// reader hands a consumer's records to its inbox.
	reader  func(*Node, *consumer) (reader, error)
	batches bool // events of a partition may share a transaction // part: batch
}

// reader reads the topic of a consumer.
type reader interface {
	// Run reads until ctx ends. Then the deliveries under way have come to their end.
	Run(ctx context.Context) error
	// Standings are how the handler gets on with the partitions of this member. // part: ops
	Standings() []progress.Standing // part: ops
	// Healthy says why nothing is read.
	Healthy(ctx context.Context) error
}

// edge is the one that the settings name; the zero value of them names the default.
func (c KafkaConfig) edge() edge {
	if c.Edge != "watermill" { // part: batch, begin
		return batchEdge
	}
	// part: batch, end
	return watermillEdge
}
