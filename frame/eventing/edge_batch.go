package eventing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/kafka"
	kafkaconsumer "example.com/twinbox/engine/kafka/consumer"
	"example.com/twinbox/engine/kafka/producer"
	"example.com/twinbox/engine/kafka/progress"
)

// batchEdge is the publisher and the consumer of package kafka.
var batchEdge = edge{
	publisher: newBatchPublisher,
	reader:    newBatchReader,
	batches:   true,
}

func newBatchPublisher(cfg kafka.Config, log *slog.Logger) (message.Publisher, error) {
	return producer.New(cfg, log)
}

// batchReader is a member of the consumer's group that hands over batches.
type batchReader struct {
	node    *Node
	name    string
	topic   string
	config  kafkaconsumer.Config
	handle  kafkaconsumer.Handler
	records atomic.Pointer[kafkaconsumer.Consumer]
}

func newBatchReader(n *Node, c *consumer) (reader, error) {
	cfg := n.setup.Config
	r := &batchReader{
		node: n, name: c.Name, topic: c.Topic,
		handle: kafkaconsumer.Handler(c.inbox.BatchMiddleware(c.handle)),
		config: kafkaconsumer.Config{
			GroupConfig: c.members,
			Batch:       cfg.Inbox.Batch,
			Parallel:    cfg.Inbox.Parallel,
			Positions:   c.inbox,
			// One by one, each with its whole time: what waits for its next attempt does not count.
			HandlerLimit: max(5*time.Minute, time.Duration(cfg.Inbox.Batch)*cfg.Inbox.HandlerTimeout),
		},
	}
	r.handle = c.unlessPaused(r.handle) // part: ops
	r.config.Hooks = kafkaconsumer.Hooks{
		Lost:   func(topic string, partition int32, idle bool) { c.lost(topic, partition, idle, n.setup.Log) },
		Failed: n.dependencies.broker.Report,
	}
	return r, r.open("")
}

// part: ops, begin

// unlessPaused handles a batch when the consumer is not paused.
func (c *consumer) unlessPaused(handle kafkaconsumer.Handler) kafkaconsumer.Handler {
	return func(ctx context.Context, msgs []*message.Message) (int, error) {
		if err := awaitResume(ctx, c.gate); err != nil {
			return 0, err
		}
		return handle(ctx, msgs)
	}
}

// part: ops, end

// open makes the member of the group, under a name or without one.
func (r *batchReader) open(instanceID string) error {
	cfg := r.config
	cfg.InstanceID = instanceID
	records, err := kafkaconsumer.New(cfg, r.handle, r.node.setup.Log)
	if err == nil {
		r.records.Store(records)
	}
	return err
}

// Run consumes under the process's name for as long as no other process takes it. Then it goes on without one: if it
// ended, or took the name back, the two would throw each other out for ever.
func (r *batchReader) Run(ctx context.Context) error {
	instanceID := r.node.setup.Config.Kafka.instanceID(r.node.bound)
	if err := r.open(instanceID); err != nil {
		return err
	}
	err := r.records.Load().Run(ctx, r.topic)
	if fenced := new(kafkaconsumer.FencedError); !errors.As(err, &fenced) {
		return err
	}
	r.node.setup.Log.ErrorContext(ctx, "another process has the same KAFKA_INSTANCE_ID, going on without one",
		"consumer", r.name, "instance_id", instanceID)
	if err := r.open(""); err != nil {
		return err
	}
	return r.records.Load().Run(ctx, r.topic)
}

// part: ops, begin

// Standings are those of the member that there is now.
func (r *batchReader) Standings() []progress.Standing { return r.records.Load().Standings() }

// part: ops, end

// Healthy is the readiness of the member that there is now.
func (r *batchReader) Healthy(ctx context.Context) error { return r.records.Load().Healthy(ctx) }
