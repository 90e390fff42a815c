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
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
)

// Handler takes messages of one partition, by offset, and returns how many it handled, from the first on. The rest
// comes again.
//
// ctx and the messages' contexts end when the partition is lost. Each message's context has its [event.Origin]. Ack and
// Nack have no effect. The slice is valid until the handler returns; the messages may be kept.
type Handler func(ctx context.Context, batch []*message.Message) (handled int, err error)

// Consumer is a member of a consumer group: watermill-kafka's Subscriber, which hands over many messages at a time.
//
// Guaranteed: the messages of a partition come by offset, to one call at a time. An offset is committed only when it
// and all before it were handled; the rest comes again after a pause, before newer ones. Every record is handed over,
// with any content. When a partition moves or the member stops, the running call may finish for DrainTimeout; a lost
// membership cancels it. For records that come again after a loss, see [ConsumerConfig.Points].
//
// Not guaranteed: that a message is handled once. A damaged batch on the log stops the partitions of its broker, and
// Healthy reports it. A panic of the handler is not caught.
type Consumer struct {
	cfg    ConsumerConfig
	handle Handler
	log    *slog.Logger
	joins  joinPauses

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // of Run
	cancel   context.CancelCauseFunc
	topic    string
	assigned []int32 // partitions
	claims   map[int32]*claim

	endSubscription context.CancelFunc // of the present one

	member, wasMember bool

	since time.Time // of the last change of member
	last  error     // the last failure in the log
	met   time.Time // when a failure last came, logged or not
}

var (
	// ErrFenced ends [Consumer.Run]: another process uses the same [ConsumerConfig.InstanceID]. To rejoin would remove
	// that one.
	ErrFenced = errors.New("another member has taken the instance id")
	// ErrOffsetGone is why a partition is not read: its next offset is not on the log. Records were removed unread, or,
	// without [ConsumerConfig.Points], the log went back. An operator decides (kafka-consumer-groups --reset-offsets).
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

// Run consumes the topic until ctx ends. Then it lets running calls end, commits, leaves the group and returns nil. It
// retries after failures; only [ErrFenced] ends it. Handlers see the values of ctx. Call it once.
func (c *Consumer) Run(ctx context.Context, topic string) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	c.mu.Lock()
	c.topic, c.ctx, c.cancel, c.since = topic, ctx, cancel, time.Now()
	c.mu.Unlock()
	settings := c.cfg.Consumer()
	strategies := settings.Consumer.Group.Rebalance.GroupStrategies
	strategies[0] = watchedStrategy{strategies[0].(cooperative), c}
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: c.cfg.Brokers, ConsumerGroup: c.cfg.Group, Unmarshaler: Marshaler{}, OverwriteSaramaConfig: settings,
		ReconnectRetrySleep: c.cfg.Backoff, Tracer: claimHook{consumer: c},
	}, troubleLog{consumer: c})
	if err != nil {
		return fmt.Errorf("make subscriber: %w", err)
	}
	watching.Go(func() { c.watchPoints(ctx) })
	watching.Go(func() { c.watchOwners(ctx) })
	left := make(chan error, 1)
	go func() { left <- c.consume(ctx, subscriber) }()
	err = c.awaitLeft(ctx, left)
	if errors.Is(context.Cause(ctx), ErrFenced) {
		return context.Cause(ctx)
	}
	if err := errors.Join(err, c.leaveGroup()); err != nil {
		c.log.Warn("leave the group", "error", err)
	}
	return nil
}

func (c *Consumer) consume(ctx context.Context, subscriber *wkafka.Subscriber) error {
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		c.mu.Lock()
		c.endSubscription = end
		c.mu.Unlock()
		messages, err := subscriber.Subscribe(one, c.topic)
		if err == nil {
			for range messages { // none: the hook reads them
			}
		} else {
			c.trouble(err)
			_ = failure.Sleep(ctx, c.joins.pauses.Next())
		}
		end()
	}
	return subscriber.Close()
}

var errNotLeft = errors.New("the group has not answered; its session timeout frees the member")

// awaitLeft waits for owned partitions and their commits, but not for a coordinator that owes a joining member its
// answer: that may take until all others have joined.
func (c *Consumer) awaitLeft(ctx context.Context, left <-chan error) error {
	for {
		stopped := ctx.Err() != nil && c.memberSince().IsZero() // partitions are given back before [groupHandler.Cleanup]
		select {
		case err := <-left:
			return err
		case <-time.After(c.cfg.RequestTimeout):
			if stopped {
				return errNotLeft
			}
		}
	}
}

// leaveGroup does for an instance id what sarama does only without one. Otherwise its partitions wait for the session's
// end.
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

// claimHook replaces watermill-kafka's handler of claims.
type claimHook struct {
	wkafka.SaramaTracer // nil: a subscriber with a group calls no other method of it
	consumer            *Consumer
}

// WrapConsumerGroupHandler is called at each connect, even right after a refusal.
func (h claimHook) WrapConsumerGroupHandler(sarama.ConsumerGroupHandler) sarama.ConsumerGroupHandler {
	h.consumer.joins.wait(h.consumer.ctx)
	return &groupHandler{consumer: h.consumer, starts: map[int32]int64{}}
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

// groupHandler serves the sessions of one connection.
type groupHandler struct {
	consumer *Consumer
	again    bool
	starts   map[int32]int64 // where Setup has placed partitions; guarded by consumer.mu
}

// Setup implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) Setup(session sarama.ConsumerGroupSession) error {
	if h.again {
		h.consumer.joins.wait(h.consumer.ctx)
	}
	h.again = true
	h.placeClaims(session)
	h.consumer.become(true)
	return nil
}

// Cleanup implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) Cleanup(sarama.ConsumerGroupSession) error {
	h.consumer.become(false)
	return nil
}

// ConsumeClaim implements [sarama.ConsumerGroupHandler].
func (h *groupHandler) ConsumeClaim(session sarama.ConsumerGroupSession, source sarama.ConsumerGroupClaim) error {
	c := h.consumer
	p := newClaim(c, session, source)
	c.mu.Lock()
	c.claims[source.Partition()] = p
	if !slices.Contains(c.assigned, source.Partition()) {
		p.leave()
	}
	if offset, is := h.starts[source.Partition()]; is {
		p.position.Store(offset)
		p.isPlaced = source.InitialOffset() <= offset
		delete(h.starts, source.Partition())
	}
	c.mu.Unlock()

	p.run()

	c.mu.Lock()
	delete(c.claims, source.Partition())
	c.mu.Unlock()
	c.cfg.Lost(source.Topic(), source.Partition())
	return nil
}

// watchedStrategy reports an assignment early: sarama closes a partition's channel after its buffered records, too late
// for a busy claim.
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

func (c *Consumer) become(member bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.member, c.since = member, time.Now()
	c.wasMember = c.wasMember || member
	if member {
		c.last = nil
		c.log.Info("consuming")
	}
}

// memberSince returns when the present membership began; zero: there is none.
func (c *Consumer) memberSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.member {
		return time.Time{}
	}
	return c.since
}

type troubleLog struct {
	watermill.NopLogger
	consumer *Consumer
}

// These are watermill-kafka's texts for a connection that failed. The second is no error for it.
const (
	connectionFailed = "Group consume error"
	answerUnknown    = "Received unknown Sarama error"
)

// Error implements [watermill.LoggerAdapter]. watermill-kafka would connect again, but it leaves a goroutine of each
// connection until the subscription ends.
func (l troubleLog) Error(text string, err error, _ watermill.LogFields) {
	l.consumer.trouble(err)
	if text == connectionFailed {
		l.consumer.mu.Lock()
		defer l.consumer.mu.Unlock()
		l.consumer.endSubscription()
	}
}

// Info implements [watermill.LoggerAdapter].
func (l troubleLog) Info(text string, _ watermill.LogFields) {
	if text == answerUnknown {
		l.Error(connectionFailed, sarama.ErrUnknown, nil)
	}
}

// With implements [watermill.LoggerAdapter].
func (l troubleLog) With(watermill.LogFields) watermill.LoggerAdapter { return l }

// troubleOver is the silence after which the same failure is logged again.
const troubleOver = 5 * time.Minute

// trouble logs a repeated failure once: a broker that is down for an hour is one line.
func (c *Consumer) trouble(err error) {
	if errors.Is(err, sarama.ErrFencedInstancedId) {
		c.cancel(fmt.Errorf("consume as %s: %w %q", c.cfg.Group, ErrFenced, c.cfg.InstanceID))
		return
	}
	if c.ctx.Err() != nil {
		return
	}
	err = classify(err)
	c.cfg.Failed(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, is := errors.AsType[*sarama.ConsumerError](err); is && c.claims[at.Partition] != nil {
		c.claims[at.Partition].progress.refused(classify(at.Err))
	}
	isNews := c.last == nil || textOf(err) != textOf(c.last) || time.Since(c.met) > troubleOver
	if c.met = time.Now(); isNews {
		c.last = err
		c.log.Warn("consume failed, trying again", "code", failure.Examine(err).Code, "error", err)
	}
}

// textOf leaves out the partition of a transient failure: a broker has many.
func textOf(err error) string {
	if at, is := errors.AsType[*sarama.ConsumerError](err); is && failure.Classify(err) == failure.Transient {
		return at.Err.Error()
	}
	return err.Error()
}

// Standings returns those of the partitions that this member owns, in no order.
func (c *Consumer) Standings() []Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	standings := make([]Standing, 0, len(c.claims))
	for _, p := range c.claims {
		standings = append(standings, p.progress.standing())
	}
	return standings
}

// Healthy returns why the member consumes nothing: Run does not run, it never joined its group, or it has been out of
// the group, refused or failing too long.
func (c *Consumer) Healthy(context.Context) error {
	if err := c.isMember(); err != nil {
		return err
	}
	for _, s := range c.Standings() {
		if failing := time.Since(s.Failing); s.Failure != nil && failing > c.cfg.UnhealthyAfter/3 {
			return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", s.Topic, s.Partition,
				failing.Round(time.Millisecond), s.Failure)
		}
		if shut := time.Since(s.Refused); s.Refusal != nil && shut > c.cfg.UnhealthyAfter/3 {
			return fmt.Errorf("consume %s/%d: cannot be read for %s: %s: %w", s.Topic, s.Partition,
				shut.Round(time.Millisecond), failure.Examine(s.Refusal).Code, s.Refusal)
		}
	}
	return nil
}

func (c *Consumer) isMember() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx == nil:
		return errors.New("consume: not started")
	case c.ctx.Err() != nil && errors.Is(context.Cause(c.ctx), ErrFenced):
		return context.Cause(c.ctx)
	case c.ctx.Err() != nil, c.member:
		return nil
	}
	reason, patience := "no answer yet", c.cfg.UnhealthyAfter
	if c.last != nil {
		reason, patience = failure.Examine(c.last).Code+": "+c.last.Error(), c.cfg.UnhealthyAfter/3
	}
	if away := time.Since(c.since); away > patience || !c.wasMember {
		return fmt.Errorf("consume %s: not a member of the group for %s: %s", c.topic, away.Round(time.Second), reason)
	}
	return nil
}
