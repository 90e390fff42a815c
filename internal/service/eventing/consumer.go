package eventing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/service"
)

// Consumer reads one topic, with its own consumer group and inbox. The relay wakes for events that its handler adds.
type Consumer struct {
	// Name of the inbox and the group. A new name starts over.
	Name  string
	Topic string
	// Handlers are typed. Set them, or Handler and Types.
	Handlers *inbox.Mux
	// Handler is a plain Watermill handler. It finds its transaction with [inbox.TxFromContext] and the event with
	// [inbox.EventFromContext].
	Handler message.NoPublishHandlerFunc
	Types   []string
	// Middlewares run around the handler, in its transaction, at each attempt and replay; the first is the outermost.
	// Retry, PoisonQueue and InstantAck do not belong here: the inbox does their work.
	Middlewares []message.HandlerMiddleware
	// Order of a key's events. Default: inbox.Unordered.
	Order inbox.Order
	// OnOutcome is called after each delivery. Optional.
	OnOutcome func(event.Event, inbox.Outcome)
}

type consumer struct {
	Consumer
	node      *Node
	group     string
	handle    message.HandlerFunc
	copies    kafka.Topic           // of its dead letters
	unchecked atomic.Pointer[error] // why it does not consume yet
	inbox     *inbox.Inbox
	replays   *inbox.Replayer
	member    atomic.Pointer[kafka.Consumer]
	leaving   sync.WaitGroup
	held      atomic.Int64
	publishes atomic.Bool // a handler has added an event
}

func (c Consumer) types() []string {
	if c.Handlers != nil {
		return c.Handlers.Types()
	}
	return c.Types
}

func (c Consumer) Accepts(eventType string) bool {
	if c.Handlers != nil {
		return c.Handlers.Accepts(eventType)
	}
	return slices.Contains(c.Types, eventType)
}

func (n *Node) checkConsumer(c Consumer) error {
	isTyped, isPlain := c.Handlers != nil, c.Handler != nil
	switch {
	case slices.Contains(n.consumerNames(), c.Name): // they would share their events
		return errors.New("another consumer of the service has this name")
	case isTyped == isPlain || isPlain != (len(c.Types) > 0):
		return errors.New("want either Handlers, or a Handler and its Types")
	case n.setup.Declared == nil:
		return nil
	}
	var problems []error
	for _, t := range c.types() {
		i := slices.IndexFunc(n.setup.Declared, func(d event.Declaration) bool { return d.Type == t })
		if i < 0 {
			problems = append(problems, fmt.Errorf("it handles %s, and the contract has no such event", t))
		} else if topic := n.setup.Declared[i].Topic; topic != c.Topic {
			problems = append(problems, fmt.Errorf("it reads %s and handles %s, which is on %s", c.Topic, t, topic))
		}
	}
	return errors.Join(problems...)
}

func (c Consumer) handler() message.HandlerFunc {
	var handle message.HandlerFunc = func(msg *message.Message) ([]*message.Message, error) { return nil, c.Handler(msg) }
	if c.Handlers != nil {
		handle = c.Handlers.HandleMessage
	}
	for _, middleware := range slices.Backward(c.Middlewares) {
		handle = middleware(handle)
	}
	return handle
}

// heartbeat bounds how late members notice a new one.
const heartbeat = 500 * time.Millisecond

// Consume adds a consumer. The node also writes to dlq.GROUP.TOPIC, for copies of its dead letters.
func (n *Node) Consume(c Consumer) error {
	err := n.checkConsumer(c)
	if err != nil {
		return fmt.Errorf("open consumer %s: %w", c.Name, err)
	}
	cfg := n.setup.Config
	kc := &consumer{Consumer: c, node: n, group: cfg.Group(c.Name)}
	handle := c.handler()
	kc.handle = func(msg *message.Message) ([]*message.Message, error) {
		msg.SetContext(outbox.WithNote(msg.Context(), func() { kc.publishes.Store(true) }))
		return handle(msg)
	}
	kc.copies = cfg.Topics(deadletter.CopyTopic(kc.group, c.Topic))[0]
	kc.unchecked.Store(new(errors.New("no answer yet")))
	kc.inbox, err = inbox.New(inbox.Config{
		Consumer:       c.Name,
		Group:          kc.group,
		Pool:           n.Pool,
		Accepts:        c.Accepts,
		Validate:       n.setup.Validate,
		Order:          c.Order,
		Batch:          cfg.Inbox.Batch,
		OnConflict:     inbox.ConflictMode(cfg.Inbox.OnConflict),
		MaxAttempts:    cfg.Inbox.MaxAttempts,
		HandlerTimeout: cfg.Inbox.HandlerTimeout,
		RetryMin:       cfg.Inbox.RetryMin,
		RetryMax:       cfg.Inbox.RetryMax,
		Host:           kc,
		Log:            n.Log,
		Registerer:     n.Admin.Registry(),
		Spans:          n.Spans,
	})
	if err != nil {
		return fmt.Errorf("open inbox of %s: %w", c.Name, err)
	}
	kc.replays = inbox.NewReplayer(kc.inbox, kc.handle)
	if err := kc.join(""); err != nil {
		return fmt.Errorf("open consumer %s: %w", c.Name, err)
	}
	n.consumers = append(n.consumers, kc)
	n.addTopics(kc.copies)
	n.Admin.Check("consumer "+c.Name, requireUp(kc.healthy, n.database, n.broker))
	return nil
}

// A stop lets the delivery under way end and commits its offset.
func (n *Node) startConsumers(g *service.Group) {
	if len(n.consumers) > 0 {
		g.Go("inbox janitor", n.runJanitor)
	}
	for _, c := range n.consumers {
		g.Go("consumer "+c.Name, func(ctx context.Context) error {
			if err := n.await(ctx, "the topics of "+c.Name, c.checkTopics); err != nil {
				return err
			}
			defer c.closeInbox(ctx)
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() error { return c.run(ctx) })
			both.Go(func() error { return c.replays.ResumeParked(ctx) })
			return both.Wait()
		})
	}
}

// checkTopics creates the topic for copies, and refuses records that outlive the inbox.
func (c *consumer) checkTopics(ctx context.Context) error {
	err := c.ensureCopies(ctx)
	if err == nil {
		err = c.node.requirements(c).Check(ctx)
	}
	c.unchecked.Store(&err)
	return err
}

func (c *consumer) ensureCopies(ctx context.Context) error {
	client := c.node.client
	found, err := kafka.DescribeTopics(ctx, client, c.copies.Name)
	if _, exists := found[c.copies.Name]; !exists && err == nil {
		err = kafka.EnsureTopics(ctx, client, c.copies)
	}
	if err != nil {
		return fmt.Errorf("open topic %s for copies of dead letters, which the command topics creates: %w",
			c.copies.Name, err)
	}
	return nil
}

func (c *consumer) healthy(ctx context.Context) error {
	if err := *c.unchecked.Load(); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return c.member.Load().Healthy(ctx)
}

const leaveTimeout = 2 * time.Second

// leavePartition stores a clean end: the next owner suspects no event.
func (c *consumer) leavePartition(topic string, partition int32) {
	record := c.inbox.Leave(topic, partition)
	c.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		if err := record(ctx); err != nil {
			c.node.Log.WarnContext(ctx, "partition not left", "consumer", c.Name, "partition", partition, "error", err)
		}
	})
}

// closeInbox may fail: the next owner is slower at first.
func (c *consumer) closeInbox(ctx context.Context) {
	c.leaving.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := c.inbox.Close(ctx); err != nil {
		c.node.Log.WarnContext(ctx, "inbox not closed", "consumer", c.Name, "error", err)
	}
}

func (c *consumer) Attempted(ctx context.Context, failure error) { kafka.Pausing(ctx, failure)() }

// Wait returns when the database comes back. A pause does not stall the partition.
func (c *consumer) Wait(ctx context.Context, failure error, d time.Duration) error {
	defer kafka.Pausing(ctx, failure)()
	database := c.node.database
	database.Report(failure)
	if err := database.Pause(ctx, d); err != nil {
		return err
	}
	return database.Await(ctx)
}

// AwaitResume also waits while it is not known whether the consumer is paused.
func (c *consumer) AwaitResume(ctx context.Context) error {
	for {
		paused, err := c.node.pauses.Get()
		if _, isPaused := paused[c.Name]; !isPaused && err == nil {
			return nil
		}
		c.node.database.Report(err)
		if err := c.hold(ctx, err); err != nil {
			return fmt.Errorf("wait while the consumer is paused: %w", err)
		}
	}
}

func (c *consumer) hold(ctx context.Context, why error) error {
	defer kafka.Pausing(ctx, why)()
	c.held.Add(1)
	defer c.held.Add(-1)
	return failure.Sleep(ctx, 50*time.Millisecond)
}

// Handled wakes the relay for what a handler has added.
func (c *consumer) Handled(e event.Event, outcome inbox.Outcome) {
	if outcome == inbox.Applied && c.publishes.Load() {
		c.node.Outbox.Committed()
	}
	if c.OnOutcome != nil {
		c.OnOutcome(e, outcome)
	}
}

// CopyDeadLetter leaves out a copy that the outbox refuses.
func (c *consumer) CopyDeadLetter(ctx context.Context, tx pgx.Tx, l deadletter.Letter) error {
	result := "queued"
	_, err := c.node.Outbox.Add(ctx, tx, l.Copy(c.node.setup.Source))
	if refused, is := errors.AsType[*outbox.EventError](err); is {
		result = refused.Code
		c.node.Log.WarnContext(ctx, "dead letter has no copy", "consumer", l.Consumer, "event_id", l.EventID,
			"correlation_id", l.CorrelationID(), "code", refused.Code, "reason", refused.Detail)
	} else if err != nil {
		return fmt.Errorf("copy dead letter: %w", err)
	}
	c.node.copies.WithLabelValues(l.Consumer, result).Inc()
	return nil
}

// A copy has the payload of another event.
func validateUnlessCopy(validate func(event.Event) error) func(event.Event) error {
	return func(e event.Event) error {
		if e.Type == deadletter.CopyType {
			return nil
		}
		return validate(e)
	}
}

func (n *Node) requirements(consumers ...*consumer) retention.Requirements {
	r := retention.Requirements{
		Retention:      n.setup.Config.Inbox.Retention,
		Slack:          n.setup.Config.Inbox.ReplayWindow,
		TopicRetention: n.topicRetention,
	}
	for _, c := range consumers {
		r.Topics = append(r.Topics, c.Topic)
	}
	return r
}

func (n *Node) topicRetention(ctx context.Context, topic string) (time.Duration, error) {
	found, err := kafka.DescribeTopics(ctx, n.client, topic)
	if _, exists := found[topic]; !exists && err == nil {
		err = errors.New("the topic does not exist")
	}
	return found[topic].Retention, err
}

func (n *Node) runJanitor(ctx context.Context) error {
	janitor, err := retention.New(retention.Config{
		Pool:       n.Pool,
		Retention:  n.setup.Config.Inbox.Retention,
		Check:      n.requirements(n.consumers...).Check,
		Every:      n.setup.Config.Inbox.JanitorInterval,
		Log:        n.Log,
		Registerer: n.Admin.Registry(),
	})
	if err != nil {
		return fmt.Errorf("open janitor: %w", err)
	}
	return janitor.Run(ctx)
}
