package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/internal/reader"
	"example.com/twinbox/internal/kafka/progress"
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
// batch is what is there when it is the partition's turn, with what was fetched with it; it is never waited for beyond
// that, and meanwhile the next one is fetched. An offset is committed only when it and all
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
	turns  turns // of the partitions

	// Since Run has begun:
	topic  string
	values context.Context // the caller's; its values go into every message, its end does not
	ctx    context.Context // ends when the membership shall
	cancel context.CancelFunc

	mu         sync.Mutex
	group      sarama.ConsumerGroup        // of the present connection
	reader     *reader.Reader              // of the same
	session    sarama.ConsumerGroupSession // the last one
	partitions map[int32]*partition

	// What the member says about itself: one log line per change, and the answer for a readiness check.
	consuming bool
	since     time.Time // of the last change of consuming
	last      error     // the trouble last logged
	met       time.Time // when it came last, logged or not
	stopped   error     // why the membership ended for good; nil when that was intended
}

var (
	// ErrOffsetGone stops a consumer: the offset at which the group should go on does not exist. Either the topic's
	// retention removed records that were never consumed, or the topic was deleted and created anew since: then it stops
	// also when the new one has a record at that offset. Going on at the oldest or newest record would hide that; an
	// operator has to say where (kafka-consumer-groups --reset-offsets).
	ErrOffsetGone = errors.New("committed offset does not exist any more")
	// ErrFenced stops a consumer: another one runs under its [kafka.GroupConfig.InstanceID]. Coming back would throw that
	// one out in turn, for ever.
	ErrFenced = errors.New("another member has taken the instance id")
	// ErrStalled stops a consumer: a partition made no progress for longer than [Config.StopAfter], although there was
	// something to do, and nothing in this process is known that would end it.
	ErrStalled = errors.New("no progress")
)

// New checks the configuration. It connects nowhere: a broker that is down is waited for by Run.
func New(cfg Config, handle Handler, log *slog.Logger) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure consumer: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cfg = cfg.WithDefaults()
	return &Consumer{
		cfg: cfg, handle: handle, log: log.With("group", cfg.Group), turns: newTurns(runtime.GOMAXPROCS(0), turnLimit),
		partitions: make(map[int32]*partition),
	}, nil
}

// Run consumes the topic, as one member of the group, until ctx is cancelled; then it lets the calls under way finish
// within the drain timeout, commits, leaves the group and returns nil. It returns an error when going on is impossible
// or useless: an [ErrOffsetGone], an [ErrFenced] or an [ErrStalled]. Everything else is retried for ever.
//
// The values of ctx are in the handler's context. Run can be called once.
func (c *Consumer) Run(ctx context.Context, topic string) error {
	if !kafka.ValidTopic(topic) {
		return fmt.Errorf("consume: %w: %q", kafka.ErrInvalidTopic, topic)
	}
	if !c.begin(ctx, topic) {
		return errors.New("consume: runs already, or has run")
	}
	c.join()
	return c.reason()
}

func (c *Consumer) begin(ctx context.Context, topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		return false
	}
	c.topic, c.values, c.since = topic, context.WithoutCancel(ctx), c.cfg.Now()
	c.ctx, c.cancel = context.WithCancel(ctx)
	return true
}

// Standings are those of the partitions that this member owns, in no order.
func (c *Consumer) Standings() []progress.Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	standings := make([]progress.Standing, 0, len(c.partitions))
	for _, p := range c.partitions {
		standings = append(standings, p.progress.Standing())
	}
	return standings
}

// Healthy reports why nothing is consumed: Run has not been called or has stopped for good, it has not been a member of
// its group for [Config.UnhealthyAfter], or a partition has been without progress for as long although there is
// something to read. A handler that runs for less than [Config.HandlerLimit] is progress; one that has kept failing for
// a third of UnhealthyAfter is none, and neither is a broker that has refused for as long to say whether there is
// something: a right is missing, or the topic.
func (c *Consumer) Healthy(context.Context) error {
	problems := []error{c.absence()}
	for _, s := range c.Standings() {
		problems = append(problems, c.judge(s))
	}
	return errors.Join(problems...)
}

// absence is patient with a membership that has not come yet, and less so with one that is known to fail.
func (c *Consumer) absence() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx == nil:
		return errors.New("consume: not started")
	case c.ctx.Err() != nil, c.consuming:
		return c.stopped
	}
	reason, patience := "no answer yet", c.cfg.UnhealthyAfter
	if c.last != nil && c.since.Sub(c.met) <= troubleOver {
		reason, patience = failure.Examine(c.last).Code+": "+c.last.Error(), c.cfg.failingAfter()
	}
	if away := c.cfg.Now().Sub(c.since); away > patience {
		return fmt.Errorf("consume %s: not a member of the group for %s: %s", c.topic, away.Round(time.Second), reason)
	}
	return nil
}

// judge reports a stall, a handler that keeps failing, and a broker that gives nothing to read. The last two never end
// the membership: what the handler needs is down, or a right is missing, and starting again would not help.
func (c *Consumer) judge(s progress.Standing) error {
	now := c.cfg.Now()
	if err := c.stalled(s, c.cfg.UnhealthyAfter); err != nil {
		return err
	}
	if failing := now.Sub(s.Failing); s.Failure != nil && failing > c.cfg.failingAfter() {
		return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", s.Topic, s.Partition,
			failing.Round(time.Millisecond), s.Failure)
	}
	if shut := now.Sub(s.Refused); s.Refusal != nil && shut > c.cfg.failingAfter() {
		return fmt.Errorf("consume %s/%d: cannot be read for %s: %s: %w", s.Topic, s.Partition,
			shut.Round(time.Millisecond), failure.Examine(s.Refusal).Code, s.Refusal)
	}
	return nil
}

// stalled says with what the partition has been stuck, if it has been for longer than the limit.
func (c *Consumer) stalled(s progress.Standing, limit time.Duration) error {
	now, stuck, reason := c.cfg.Now(), time.Duration(0), ""
	switch running := now.Sub(s.Handling); {
	case !s.Handling.IsZero() && running > c.cfg.HandlerLimit:
		stuck = running - c.cfg.HandlerLimit
		reason = fmt.Sprintf("the handler has not returned for %s", running.Round(time.Millisecond))
	case !s.Unread.IsZero():
		stuck = now.Sub(s.Unread)
		reason = fmt.Sprintf("offset %d can be read, but the client does not deliver it", s.UnreadAt)
	}
	if stuck <= limit {
		return nil
	}
	return c.reasonAt(s.Topic, s.Partition, fmt.Errorf("%w for %s: %s", ErrStalled, stuck.Round(time.Millisecond),
		reason))
}

// reasonAt is why the consumer ends, with where.
func (c *Consumer) reasonAt(topic string, partition int32, err error) error {
	return fmt.Errorf("consume %s/%d as %s: %w", topic, partition, c.cfg.Group, err)
}

// become notes that the member consumes, or does no more.
func (c *Consumer) become(consuming bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.consuming == consuming {
		return
	}
	c.consuming, c.since = consuming, c.cfg.Now()
	if consuming {
		c.last = nil
		c.log.Info("consuming")
	}
}

// troubleOver is after how long a trouble that has not come again is a new one: longer than any wait between two
// attempts.
const troubleOver = 5 * time.Minute

// trouble tells of a failure after which the member tries again. It is logged unless it is the one that was logged last
// and goes on: a broker that is down for an hour is one line.
func (c *Consumer) trouble(err error) {
	c.mu.Lock()
	now := c.cfg.Now()
	isNews := c.last == nil || err.Error() != c.last.Error() || now.Sub(c.met) > troubleOver
	c.met = now
	if isNews && c.ctx.Err() == nil {
		c.last = err
		c.log.Warn("consume failed, trying again", "code", failure.Examine(err).Code, "error", err)
	}
	c.mu.Unlock()
	if hook := c.cfg.Hooks.Failed; hook != nil {
		hook(err)
	}
}

// stop ends the membership for good; the first reason counts, and none does when the end was asked for.
func (c *Consumer) stop(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.stopped = reason
		c.log.Error("consuming stopped", "error", reason)
	}
	c.cancel()
}

// reason is why the member ended for good; nil when that was intended.
func (c *Consumer) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}
