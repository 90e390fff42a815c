package eventing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/replay"
	"example.com/twinbox/engine/inbox/retention"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/kafka/progress"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/frame/service"
)

// Consumer is one reader of one topic, with a consumer group and an inbox of its own.
type Consumer struct {
	// Name is the inbox's name of the consumer and, with the project and the environment before it, the name of its group.
	// Changing it makes the consumer start over.
	Name     string
	Topic    string
	Handlers *inbox.Mux
	// Middlewares run around the handler of each event, in the transaction that records its id and with each attempt at
	// it, replays included; the first is the outermost. They see the message, with what inbox.TxFromContext and
	// inbox.EventFromContext return in its context. An error rolls the event back and is judged like a handler's own. The
	// inbox retries, gives up and acknowledges: a middleware that does so too (Retry, PoisonQueue, InstantAck) takes that
	// from it.
	Middlewares []message.HandlerMiddleware
	// Versioned keeps the order of each key's versions; see [inbox.Config].
	Versioned bool
	// OnGap is what a versioned consumer does with an event whose predecessor is missing, where its handler was not
	// registered with a policy of its own; see [inbox.Config]. Default: inbox.GapPark.
	OnGap inbox.GapPolicy
	// OnDead is what a dead letter means for the later events of its key; see [inbox.Config].
	OnDead inbox.DeadPolicy
	// OnOutcome is called after each delivery; see Handled of [inbox.Host]. Optional.
	OnOutcome func(cloudevent.Event, inbox.Outcome)
}

// consumer is a Consumer that has been set up.
type consumer struct {
	Consumer
	group   string
	members kafka.GroupConfig   // what every edge has of them
	handle  message.HandlerFunc // the Mux inside the middlewares
	inbox   *inbox.Inbox
	replays *replay.Replayer
	reader  reader
	log     *slog.Logger
	leaving sync.WaitGroup // partitions that were lost
}

func (c Consumer) handler() message.HandlerFunc {
	handle := c.Handlers.HandleMessage
	for _, middleware := range slices.Backward(c.Middlewares) {
		handle = middleware(handle)
	}
	return handle
}

// heartbeat is how soon a member hears that another one joins, which waits for it: one that was killed and is started
// again with the partitions that it had is such a one.
const heartbeat = 500 * time.Millisecond

// Consume sets a consumer up. It runs from [Node.StartConsumers] on.
func (n *Node) Consume(c Consumer) error {
	cfg := n.setup.Config
	edge := cfg.Kafka.edge()
	batch := 1        // how many events of a partition may share a transaction
	if edge.batches { // part: batch, begin
		batch = cfg.Inbox.Batch
	}
	// part: batch, end
	kc := &consumer{Consumer: c, group: cfg.group(c.Name), handle: c.handler(), log: n.setup.Log}
	var err error
	kc.inbox, err = inbox.New(inbox.Config{
		Consumer:       c.Name,
		Group:          kc.group,
		Pool:           n.Pool,
		Handlers:       c.Handlers,
		Validate:       n.setup.Validate,
		Versioned:      c.Versioned,
		OnGap:          c.OnGap,
		OnDead:         c.OnDead,
		GapWait:        cfg.Inbox.GapWait,
		Batch:          batch,
		OnConflict:     inbox.ConflictMode(cfg.Inbox.OnConflict),
		MaxAttempts:    cfg.Inbox.MaxAttempts,
		HandlerTimeout: cfg.Inbox.HandlerTimeout,
		RetryMin:       cfg.Inbox.RetryMin,
		RetryMax:       cfg.Inbox.RetryMax,
		Host:           inboxHost{kc, n},
		Log:            n.setup.Log,
		Registerer:     n.setup.Admin.Registry(),
		Spans:          n.Spans, // part: observability
	})
	if err != nil {
		return fmt.Errorf("open inbox of %s: %w", c.Name, err)
	}
	kc.replays, err = replay.New(replay.Config{Inbox: kc.inbox, Handler: kc.handle})
	if err != nil {
		return fmt.Errorf("open replays of %s: %w", c.Name, err)
	}
	kc.members = kafka.GroupConfig{
		Config:            n.setup.client(),
		Group:             kc.group,
		SessionTimeout:    cfg.Kafka.SessionTimeout,
		HeartbeatInterval: min(heartbeat, cfg.Kafka.SessionTimeout/3),
		RebalanceTimeout:  cfg.rebalanceTimeout(),
		DrainTimeout:      cfg.Inbox.HandlerTimeout, // so a delivery under way ends by itself when a partition moves
	}
	if kc.reader, err = edge.reader(n, kc); err != nil {
		return fmt.Errorf("open consumer %s: %w", c.Name, err)
	}
	n.consumers = append(n.consumers, kc)
	n.setup.Admin.Check("consumer "+c.Name, n.dependencies.behind(kc.reader.Healthy))
	return nil
}

// StartConsumers starts every consumer and what tidies their inbox. Stopping one lets the delivery under way end and
// commits its offset.
func (n *Node) StartConsumers(g *service.Group) {
	if len(n.consumers) > 0 {
		g.Go("consumer pauses", n.gates.Run) // part: ops
		g.Go("inbox janitor", n.forget)
	}
	for _, c := range n.consumers {
		g.Go("consumer "+c.Name, func(ctx context.Context) error {
			together, ctx := errgroup.WithContext(ctx)
			together.Go(func() error { return n.awaitRequirements(ctx, c) })
			together.Go(func() error { return c.reader.Run(ctx) })
			together.Go(func() error { return c.replays.ResumeGaps(ctx) })
			err := together.Wait()
			c.leave(ctx)
			return err
		})
	}
}

const leaveTimeout = 2 * time.Second

// lost says that a partition went in good order, so that its next owner suspects no event; unless a handler was left at
// work. The subscriber does not wait for it.
func (c *consumer) lost(topic string, partition int32, idle bool) {
	if !idle {
		c.inbox.Abandon(topic, partition)
		c.log.Warn("partition left with a handler still at work", "consumer", c.Name, "partition", partition)
		return
	}
	record := c.inbox.Leave(topic, partition)
	c.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		if err := record(ctx); err != nil {
			c.log.WarnContext(ctx, "partition not left", "consumer", c.Name, "partition", partition, "error", err)
		}
	})
}

// leave says the same of every partition when the consumer has stopped. Where it fails the next owner is slower at
// first, which is no reason to end with an error.
func (c *consumer) leave(ctx context.Context) {
	c.leaving.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := c.inbox.Close(ctx); err != nil {
		c.log.WarnContext(ctx, "inbox not closed", "consumer", c.Name, "error", err)
	}
}

// inboxHost is what a consumer's inbox knows of the process: its dependencies, its outbox and the partition's loop.
type inboxHost struct {
	*consumer
	node *Node
}

// Pause implements [inbox.Host]. A pause is no stall of the partition, however long the database is away.
func (h inboxHost) Pause(ctx context.Context, failure error, d time.Duration) error {
	defer progress.Pausing(ctx, failure)() // part: standing
	if d == 0 {
		return nil
	}
	if err := h.node.dependencies.wait(ctx, failure, d); err != nil {
		return err
	}
	if err := awaitResume(ctx, h.node.gates, h.Name); err != nil { // part: ops, begin
		return err // what an operator paused is not tried again either
	} // part: ops, end
	return nil
}

// Handled implements [inbox.Host].
func (h inboxHost) Handled(event cloudevent.Event, outcome inbox.Outcome) {
	if h.OnOutcome != nil {
		h.OnOutcome(event, outcome)
	}
}

// CopyDeadLetter implements [inbox.Host]: the copy goes through the outbox, in the transaction that files the dead
// letter. A record that the outbox does not take, say because it is too large, has no copy: the database's errors alone
// keep the dead letter from being filed.
func (h inboxHost) CopyDeadLetter(ctx context.Context, tx pgx.Tx, l deadletter.Letter) error {
	if l.Group == "" || l.Topic == "" {
		h.node.copies.WithLabelValues(l.Consumer, "no_origin").Inc()
		return nil
	}
	result := "queued"
	err := h.node.Outbox.AddRecord(ctx, tx, deadletter.CopyTopic(l.Group, l.Topic), l.Copy(), l.Payload)
	if refused, is := errors.AsType[*outbox.EventError](err); is {
		result = string(refused.Code)
		h.log.WarnContext(ctx, "dead letter has no copy", "consumer", l.Consumer, "event_id", l.EventID,
			"correlation_id", l.CorrelationID(), "code", refused.Code, "reason", refused.Detail)
	} else if err != nil {
		return fmt.Errorf("copy dead letter: %w", err)
	}
	h.node.copies.WithLabelValues(l.Consumer, result).Inc()
	return nil
}

// requirements are what the inbox's promise rests on, for the consumers given.
func (s Setup) requirements(consumers ...*consumer) retention.Requirements {
	cfg := s.Config
	r := retention.Requirements{
		Retention:        cfg.Inbox.Retention,
		TopicRetention:   s.topicRetention,
		Slack:            cfg.Inbox.ReplayWindow,
		HandlerTimeout:   cfg.Inbox.HandlerTimeout,
		RebalanceTimeout: cfg.rebalanceTimeout(),
		Environment:      cfg.Environment,
		FromOldest:       true, // engine/kafka knows no other start
	}
	for _, c := range consumers {
		r.Topics = append(r.Topics, c.Topic)
		r.Groups = append(r.Groups, c.group)
	}
	return r
}

var errNoTopic = errors.New("the topic does not exist")

// topicRetention asks the broker how long it keeps the records of one topic.
func (s Setup) topicRetention(ctx context.Context, topic string) (time.Duration, error) {
	kept, err := admin.ReadTopicSettings(ctx, s.client(), topic)
	if err != nil {
		return 0, err
	}
	found, exists := kept[topic]
	if !exists {
		return 0, errNoTopic
	}
	return found.Retention, nil
}

// awaitRequirements finds out whether an event of the consumer's topic could come again after the inbox has forgotten
// it, and returns an error if it could. A broker that does not answer or a topic that is not there yet is asked again,
// while the consumer already runs: the janitor forgets nothing as long as it gets no answer to the same question.
func (n *Node) awaitRequirements(ctx context.Context, c *consumer) error {
	err := n.await(ctx, "requirements of "+c.Name, func(ctx context.Context) error {
		err := n.setup.requirements(c).Check(ctx)
		if wrong, found := errors.AsType[*retention.RequirementError](err); found && wrong.Known() {
			return uselessError{err}
		}
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// forget tidies the inbox that all consumers of the service share.
func (n *Node) forget(ctx context.Context) error {
	janitor, err := retention.New(retention.Config{
		Pool:       n.Pool,
		Retention:  n.setup.Config.Inbox.Retention,
		Redelivery: n.setup.requirements(n.consumers...).Redelivery,
		Every:      n.setup.Config.Inbox.JanitorInterval,
		Log:        n.setup.Log,
		Registerer: n.setup.Admin.Registry(),
	})
	if err != nil {
		return fmt.Errorf("open janitor: %w", err)
	}
	return janitor.Run(ctx)
}
