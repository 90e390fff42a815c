package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/kafka"
)

// Handler takes messages of one partition, in the order of their offsets, and says how many of them, from the first
// on, are dealt with. The rest comes again.
//
// ctx and the contexts of the messages are cancelled when the partition is lost: what is done after that is done again
// by the next owner. Each message's context also carries its [cloudevent.Origin]. Ack and Nack of the messages have no
// effect. The slice is the handler's until it returns; the messages may be kept.
type Handler func(ctx context.Context, batch []*message.Message) (handled int, err error)

// Consumer runs a handler over the partitions that a member of a consumer group owns, a loop per partition.
//
// Guaranteed: the messages of a partition are handed over in the order of their offsets, to one call at a time. A
// batch is what is there when it is the partition's turn ([Config.Parallel]), with what was fetched with it; it
// is never waited for beyond that, and meanwhile the next one is fetched. An offset is committed only when it and all
// before it were handled; what was not comes again after a backoff, before anything newer. Every record is handed over,
// with any content; a damaged batch on the log is handed over as one message that says so
// ([cloudevent.Origin.Unreadable]).
//
// Not guaranteed: that a message is handled once. After a crash, or when a handler outlives the loss of its partition,
// it is handled again, perhaps while the first call still runs elsewhere; the inbox is what makes its effect single.
// A panic of the handler is not caught.
type Consumer struct {
	cfg    Config
	handle Handler
	log    *slog.Logger
	member atomic.Pointer[member]
}

// New checks the configuration. It connects nowhere: a broker that is down is waited for by Run.
func New(cfg Config, handle Handler, log *slog.Logger) (*Consumer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure consumer: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Consumer{cfg: cfg, handle: handle, log: log.With("group", cfg.Group)}, nil
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
		if !kafka.ValidTopic(topic) {
			return fmt.Errorf("consume: %w: %q", kafka.ErrInvalidTopic, topic)
		}
	}
	m := newMember(ctx, memberConfig{
		Config: c.cfg, topics: topics, turns: newTurns(c.cfg.Parallel, turnLimit), deliver: c.deliver,
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
// its group for [Config.UnhealthyAfter], or a partition has been without progress for as long although there is
// something to read. A handler that runs for less than [Config.HandlerLimit] is progress; one that has kept
// failing for [Config.FailingAfter] is none, and neither is a broker that has refused for as long to say whether
// there is something: a right is missing, or the topic.
func (c *Consumer) Healthy(context.Context) error {
	m := c.member.Load()
	if m == nil {
		return errors.New("consume: not started")
	}
	return m.healthy()
}
