package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Handler takes messages of one partition, in the order of their offsets, and says how many of them, from the first
// on, are dealt with. The rest comes again.
//
// ctx and the contexts of the messages are cancelled when the partition is lost: what is done after that is done again
// by the next owner. Each message's context also carries its [cloudevent.Origin]. Ack and Nack of the messages have no
// effect. The slice is the handler's until it returns; the messages may be kept.
type Handler func(ctx context.Context, batch []*message.Message) (handled int, err error)

// ConsumerConfig is a [GroupConfig] plus what is a [Consumer]'s own. The zero value of a field means its default.
type ConsumerConfig struct {
	GroupConfig
	// Batch is how many messages one call of the handler gets at most. Default 200.
	Batch int
	// MaxBytes bounds what is held of a partition: the batch under way, and so each batch, and what lies ready behind it.
	// A record counts with its key, value and headers and a few hundred bytes more; a larger one is held by itself.
	// Default 4,000,000.
	MaxBytes int
	// Parallel is for how many partitions at a time a batch that is not full may be handled. The others wait for their
	// turn and gather more, so that under load a batch is a batch and not a record: fewer, larger transactions. Full
	// batches do not count, and a call that lasts longer than 10 ms counts no more, so a handler that waits holds
	// the others up for no longer. Default: as many as there are cores.
	Parallel int
	// HandlerLimit is how long a call may take, counted anew after each pause ([Pausing]), before the partition
	// counts as stalled. It ends nothing: a handler has its own timeouts, and they should be shorter. Default 5 min.
	HandlerLimit time.Duration
	// Positions keeps how far each partition is read in the store that the handler writes to. Default: none, and then
	// nothing tells that what was handled is gone.
	Positions Positions
}

// WithDefaults returns the configuration that is really used.
func (c ConsumerConfig) WithDefaults() ConsumerConfig {
	c.GroupConfig = c.GroupConfig.WithDefaults()
	if c.Batch == 0 {
		c.Batch = 200
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 4_000_000
	}
	if c.Parallel == 0 {
		c.Parallel = runtime.GOMAXPROCS(0)
	}
	if c.HandlerLimit == 0 {
		c.HandlerLimit = 5 * time.Minute
	}
	return c
}

// Validate reports every problem at once, without connecting anywhere.
func (c ConsumerConfig) Validate() error {
	problems := []error{c.GroupConfig.Validate()}
	c = c.WithDefaults()
	if c.Batch < 1 {
		problems = append(problems, fmt.Errorf("batch: %d is not at least 1", c.Batch))
	}
	if c.Parallel < 1 {
		problems = append(problems, fmt.Errorf("parallel: %d is not at least 1", c.Parallel))
	}
	if c.MaxBytes < 1 {
		problems = append(problems, fmt.Errorf("max bytes: %d is not at least 1", c.MaxBytes))
	}
	return errors.Join(append(problems, positive("handler limit", c.HandlerLimit))...)
}

// Consumer runs a handler over the partitions that a member of a consumer group owns, a loop per partition.
//
// Guaranteed: the messages of a partition are handed over in the order of their offsets, to one call at a time. A
// batch is what is there when it is the partition's turn ([ConsumerConfig.Parallel]), with what was fetched with it; it
// is never waited for beyond that, and meanwhile the next one is fetched. An offset is committed only when it and all
// before it were handled; what was not comes again after a backoff, before anything newer. Every record is handed over,
// whatever it holds; a damaged batch on the log, which nobody can read, as one message that says so
// ([cloudevent.Origin.Unreadable]).
//
// Not guaranteed: that a message is handled once. After a crash, or when a handler outlives the loss of its partition,
// it is handled again, perhaps while the first call still runs elsewhere; the inbox is what makes its effect single.
// A panic of the handler is not caught.
type Consumer struct {
	cfg    ConsumerConfig
	handle Handler
	log    *slog.Logger
	member atomic.Pointer[member]
}

// NewConsumer checks the configuration. It connects nowhere: a broker that is down is waited for by Run.
func NewConsumer(cfg ConsumerConfig, handle Handler, log *slog.Logger) (*Consumer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure consumer: %w", err)
	}
	return &Consumer{cfg: cfg, handle: handle, log: orDiscard(log).With("group", cfg.Group)}, nil
}

// Run consumes the topics, as one member of the group, until ctx is cancelled; then it lets the calls under way finish
// within the drain timeout, commits, leaves the group and returns nil. It returns an error when going on is impossible
// or useless: an [OffsetError], a [FencedError] or a [StallError]. Everything else is retried for ever.
//
// The values of ctx are in the handler's context. Run can be called once.
func (c *Consumer) Run(ctx context.Context, topics ...string) error {
	if len(topics) == 0 {
		return errors.New("consume: no topic")
	}
	for _, topic := range topics {
		if !ValidTopic(topic) {
			return fmt.Errorf("consume: %w: %q", ErrInvalidTopic, topic)
		}
	}
	m := newMember(ctx, memberConfig{
		GroupConfig:  c.cfg.GroupConfig,
		topics:       topics,
		batch:        c.cfg.Batch,
		maxBytes:     c.cfg.MaxBytes,
		handlerLimit: c.cfg.HandlerLimit,
		positions:    c.cfg.Positions,
		turns:        newTurns(c.cfg.Parallel, turnLimit),
		deliver:      c.deliver,
	}, c.log)
	if !c.member.CompareAndSwap(nil, m) {
		m.cancel()
		return errors.New("consume: runs already, or has run")
	}
	m.run()
	return m.status.reason()
}

func (c *Consumer) deliver(p *partition, batch []entry) (handled int, err error) {
	return c.handle(p.ctx, decodeAll(p.ctx, c.cfg.Group, batch))
}

// Healthy reports why nothing is consumed: Run has not been called or has stopped for good, it has not been a member of
// its group for [GroupConfig.UnhealthyAfter], or a partition has been without progress for as long although there is
// something to read. A handler that runs for less than [ConsumerConfig.HandlerLimit] is progress; one that has kept
// failing for [GroupConfig.FailingAfter] is none, and neither is a broker that has refused for as long to say whether
// there is something: a right is missing, or the topic.
func (c *Consumer) Healthy(context.Context) error {
	m := c.member.Load()
	if m == nil {
		return errors.New("consume: not started")
	}
	return m.healthy()
}
