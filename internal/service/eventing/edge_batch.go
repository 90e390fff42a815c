package eventing

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	kafkaconsumer "example.com/twinbox/internal/kafka/consumer"
	"example.com/twinbox/internal/kafka/progress"
)

// batchEdge is the consumer of package kafka.
var batchEdge = edge{reader: newBatchReader, batches: true}

// batchReader is a member of the consumer's group that hands over batches.
type batchReader struct {
	consumer *consumer
	config   kafkaconsumer.Config
	records  atomic.Pointer[kafkaconsumer.Consumer]
}

func newBatchReader(c *consumer) (reader, error) {
	cfg := c.node.setup.Config
	r := &batchReader{
		consumer: c,
		config: kafkaconsumer.Config{
			GroupConfig: c.members,
			Batch:       cfg.Inbox.Batch,
			Positions:   c.inbox,
			// One by one, each with its whole time: what waits for its next attempt does not count.
			HandlerLimit: max(5*time.Minute, time.Duration(cfg.Inbox.Batch)*cfg.Inbox.HandlerTimeout),
			Hooks:        kafkaconsumer.Hooks{Lost: c.lost, Failed: c.node.dependencies.broker.Report},
		},
	}
	return r, r.open("")
}

// open makes the member of the group, under a name or without one.
func (r *batchReader) open(instanceID string) error {
	cfg, handle := r.config, r.consumer.inbox.BatchMiddleware(r.consumer.handle)
	cfg.InstanceID = instanceID
	records, err := kafkaconsumer.New(cfg, func(ctx context.Context, msgs []*message.Message) (int, error) {
		if err := r.consumer.awaitResume(ctx); err != nil {
			return 0, err
		}
		return handle(ctx, msgs)
	}, r.consumer.node.Log)
	if err == nil {
		r.records.Store(records)
	}
	return err
}

// Run consumes under the process's name for as long as no other process takes it. Then it goes on without one: if it
// ended, or took the name back, the two would throw each other out for ever.
func (r *batchReader) Run(ctx context.Context) error {
	node := r.consumer.node
	instanceID := node.setup.Config.Kafka.instanceID(node.bound)
	if err := r.open(instanceID); err != nil {
		return err
	}
	err := r.records.Load().Run(ctx, r.consumer.Topic)
	if !errors.Is(err, kafkaconsumer.ErrFenced) {
		return err
	}
	node.Log.ErrorContext(ctx, "another process has the same KAFKA_INSTANCE_ID, going on without one",
		"consumer", r.consumer.Name, "instance_id", instanceID)
	if err := r.open(""); err != nil {
		return err
	}
	return r.records.Load().Run(ctx, r.consumer.Topic)
}

// Standings are those of the member that there is now.
func (r *batchReader) Standings() []progress.Standing { return r.records.Load().Standings() }

// Healthy is the readiness of the member that there is now.
func (r *batchReader) Healthy(ctx context.Context) error { return r.records.Load().Healthy(ctx) }
