package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
)

// Handler takes messages of one partition, by offset, and returns how many it handled, from the first on. The rest
// comes again.
//
// ctx and the messages' contexts end when the partition is lost. Each message's context has its [event.Origin]. Ack and
// Nack have no effect. The slice is valid until the handler returns.
type Handler func(ctx context.Context, batch []*message.Message) (handled int, err error)

// Consumer is a member of a consumer group: watermill-kafka's Subscriber, which hands over many messages at a time.
//
// Guaranteed: the messages of a partition come by offset, to one call at a time. An offset is committed only when it
// and all before it were handled; the rest comes again after a pause. Every record is handed over, with any content.
// When a partition moves or the member stops, the running call may finish for DrainTimeout; a lost membership cancels
// it.
//
// Not guaranteed: that a message is handled once. A damaged batch stops the partitions of its broker.
type Consumer struct {
	cfg    ConsumerConfig
	handle Handler
	log    *slog.Logger
	joins  joinPauses

	deciding sync.Mutex // where a partition begins: one asks at a time

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // of Run
	cancel   context.CancelCauseFunc
	topic    string
	assigned []int32 // partitions
	claims   map[int32]*claim

	joined time.Time // when the present membership began; zero: there is none
	away   time.Time // since when there is none; zero: there never was one

	last error // the last failure, and when it came
	met  time.Time
}

var (
	// ErrFenced ends [Consumer.Run]: another process uses the same [ConsumerConfig.InstanceID].
	ErrFenced = errors.New("another member has taken the instance id")
	// ErrOffsetGone is why a partition is not read: its next records were removed. An operator decides
	// (kafka-consumer-groups --reset-offsets).
	ErrOffsetGone = errors.New("the committed offset is not on the log")

	errPartitionLost = errors.New("partition lost")
	errStopped       = errors.New("consumer stopped")
)

// NewConsumer checks the configuration. It does not connect.
func NewConsumer(cfg ConsumerConfig, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure consumer: %w", err)
	}
	cfg, log = cfg.withDefaults(), cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Consumer{
		cfg: cfg, handle: handle, log: log.With("group", cfg.Group), claims: make(map[int32]*claim),
		joins: joinPauses{pauses: failure.Backoff{Min: cfg.Backoff, Max: 20 * cfg.Backoff}},
	}, nil
}

// Run consumes the topic until ctx ends. Then it lets running calls end, commits, leaves the group and returns nil.
// Only [ErrFenced] ends it earlier. Handlers see the values of ctx. Call it once.
func (c *Consumer) Run(ctx context.Context, topic string) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	c.mu.Lock()
	c.topic, c.ctx, c.cancel = topic, ctx, cancel
	c.mu.Unlock()
	watching.Go(func() { c.watch(ctx) })
	left := make(chan struct{})
	go func() {
		defer close(left)
		for ctx.Err() == nil {
			if err := c.subscribe(ctx); err != nil {
				c.trouble(err)
				_ = failure.Sleep(ctx, c.joins.pauses.Next())
			}
		}
	}()
	<-ctx.Done()
	err := c.awaitLeft(left)
	if errors.Is(context.Cause(ctx), ErrFenced) {
		return context.Cause(ctx)
	}
	if err := errors.Join(err, c.leaveGroup()); err != nil {
		c.log.Warn("leave the group", "error", err)
	}
	return nil
}

// subscribe returns when a connection of the group has failed, or ctx has ended.
func (c *Consumer) subscribe(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	settings := c.cfg.Consumer()
	strategies := settings.Consumer.Group.Rebalance.GroupStrategies
	strategies[0] = watchedStrategy{strategies[0].(cooperative), c}
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: c.cfg.Brokers, ConsumerGroup: c.cfg.Group, Unmarshaler: Marshaler{}, OverwriteSaramaConfig: settings,
		ReconnectRetrySleep: c.cfg.Backoff, Tracer: &groupHandler{consumer: c, end: end},
	}, troubleLog{consumer: c})
	if err != nil {
		return err
	}
	messages, err := subscriber.Subscribe(ctx, c.topic)
	if err != nil {
		return err
	}
	for range messages { // none: the hook reads them
	}
	return subscriber.Close()
}

// watch compares positions, and looks for partitions without an owner.
func (c *Consumer) watch(ctx context.Context) {
	var owners ownerWatch
	for failure.Sleep(ctx, c.cfg.LookEvery) == nil {
		c.checkPoints(ctx)
		c.checkOwners(ctx, &owners)
	}
}

var errNotLeft = errors.New("the group has not answered; its session timeout frees the member")

// awaitLeft waits for owned partitions and their commits, but not for the answer to a join: it may wait for all others.
func (c *Consumer) awaitLeft(left <-chan struct{}) error {
	for {
		isOut := c.memberSince().IsZero() // partitions are given back before [groupHandler.Cleanup]
		select {
		case <-left:
			return nil
		case <-time.After(c.cfg.RequestTimeout):
			if isOut {
				return errNotLeft
			}
		}
	}
}

// leaveGroup does what sarama does only without an instance id.
func (c *Consumer) leaveGroup() error {
	if c.cfg.InstanceID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.RequestTimeout)
	defer cancel()
	return Ask(ctx, c.cfg.Config, "leave "+c.cfg.Group, func(cluster Cluster) error {
		_, err := cluster.admin.RemoveMemberFromConsumerGroup(c.cfg.Group, []string{c.cfg.InstanceID})
		return err
	})
}

// joinPauses slows down a group that refuses its member or ends its sessions early.
type joinPauses struct {
	pauses failure.Backoff
	began  time.Time // the last attempt
}

// goodAttempt is the length of an attempt after which the pauses begin anew.
const goodAttempt = 5 * time.Second

func (j *joinPauses) wait(ctx context.Context) {
	if time.Since(j.began) > goodAttempt {
		j.pauses.Reset()
	} else {
		_ = failure.Sleep(ctx, j.pauses.Next())
	}
	j.began = time.Now()
}

// groupHandler replaces watermill-kafka's handler of claims, for one connection. The next one ends the subscription,
// since watermill-kafka keeps a goroutine of each connection until then.
type groupHandler struct {
	wkafka.SaramaTracer // nil: a subscriber with a group calls no other method of it
	consumer            *Consumer
	end                 context.CancelFunc // of the subscription
	isConnected         bool
	hasJoined           bool // the group, before
}

// WrapConsumerGroupHandler is called at each connect, even right after a refusal.
func (h *groupHandler) WrapConsumerGroupHandler(sarama.ConsumerGroupHandler) sarama.ConsumerGroupHandler {
	if h.isConnected {
		h.end()
	} else {
		h.isConnected = true
		h.consumer.joins.wait(h.consumer.ctx)
	}
	return h
}

// Setup implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) Setup(sarama.ConsumerGroupSession) error {
	c := h.consumer
	if h.hasJoined {
		c.joins.wait(c.ctx)
	}
	h.hasJoined = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined, c.last = time.Now(), nil
	c.log.Info("consuming")
	return nil
}

// Cleanup implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) Cleanup(sarama.ConsumerGroupSession) error {
	c := h.consumer
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined, c.away = time.Time{}, time.Now()
	return nil
}

// ConsumeClaim implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) ConsumeClaim(session sarama.ConsumerGroupSession, source sarama.ConsumerGroupClaim) error {
	c, partition := h.consumer, source.Partition()
	p := newClaim(c, session, source)
	c.mu.Lock()
	c.claims[partition] = p
	if !slices.Contains(c.assigned, partition) {
		p.leave()
	}
	c.mu.Unlock()

	p.run()

	c.mu.Lock()
	delete(c.claims, partition)
	c.mu.Unlock()
	c.cfg.Lost(source.Topic(), partition)
	return nil
}

// watchedStrategy reports an assignment early: sarama closes a claim's channel only after its buffered records.
type watchedStrategy struct {
	cooperative
	consumer *Consumer
}

type cooperative interface {
	sarama.RebalanceProtocolBalanceStrategy
	sarama.SubscriptionUserDataBalanceStrategy
	sarama.OnAssignmentBalanceStrategy
}

// OnAssignment implements [sarama.OnAssignmentBalanceStrategy].
func (s watchedStrategy) OnAssignment(assignment *sarama.ConsumerGroupMemberAssignment, generation int32) {
	s.cooperative.OnAssignment(assignment, generation)
	c := s.consumer
	c.mu.Lock()
	defer c.mu.Unlock()
	c.assigned = slices.Clone(assignment.Topics[c.topic]) // sarama sorts its own
	for partition, p := range c.claims {
		if !slices.Contains(c.assigned, partition) {
			p.leave()
		}
	}
}

// memberSince returns when the present membership began; zero: there is none.
func (c *Consumer) memberSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined
}
