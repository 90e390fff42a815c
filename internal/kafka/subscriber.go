package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// SubscriberConfig is a [GroupConfig] plus what is a [Subscriber]'s own.
type SubscriberConfig struct {
	GroupConfig
	// Window is how many messages of a partition may be unacknowledged at a time. With 1 a partition is handled
	// strictly in order even by a Watermill Router, which starts a goroutine per message. Only a consumer that reads
	// the channel in order and acknowledges in order gains from more. Default 1.
	Window int
}

// WithDefaults returns the configuration that is really used.
func (c SubscriberConfig) WithDefaults() SubscriberConfig {
	c.GroupConfig = c.GroupConfig.WithDefaults()
	if c.Window == 0 {
		c.Window = 1
	}
	return c
}

// Validate reports every problem at once, without connecting anywhere.
func (c SubscriberConfig) Validate() error {
	problems := []error{c.GroupConfig.Validate()}
	if c.WithDefaults().Window < 1 {
		problems = append(problems, fmt.Errorf("window: %d is not at least 1", c.Window))
	}
	return errors.Join(problems...)
}

// Subscriber is a [message.Subscriber] on a Kafka consumer group.
//
// Guaranteed: the messages of a partition arrive in the order of their offsets, at most [SubscriberConfig.Window] of
// them unacknowledged; an offset is committed only when it and all before it are acknowledged; a nacked message comes
// again, in its place, after a backoff, together with those behind it that were out; every record arrives, decodable
// or not. The context of a message carries [cloudevent.Origin] and the values of Subscribe's context; it is cancelled
// when the message is settled or the partition is lost.
//
// Not guaranteed: that a message arrives once. After a crash, or when a handler outlives the loss of its partition, it
// arrives again, perhaps while the first handler still runs elsewhere; the inbox is what makes its effect single.
//
// Whoever handles many messages in one transaction is better served by a [Consumer].
type Subscriber struct {
	cfg SubscriberConfig
	log *slog.Logger

	mu      sync.Mutex
	closed  bool
	members []*member
}

// NewSubscriber checks the configuration. It connects nowhere: a broker that is down is waited for by Subscribe.
func NewSubscriber(cfg SubscriberConfig, log *slog.Logger) (*Subscriber, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure subscriber: %w", err)
	}
	return &Subscriber{cfg: cfg, log: orDiscard(log).With("group", cfg.Group)}, nil
}

// Subscribe joins the group for one topic and returns at once; the channel delivers what the group has not yet
// acknowledged, from the oldest record when it has acknowledged nothing. The channel is closed after the subscriber was
// closed or ctx cancelled, and when the subscription cannot go on: then [Hooks.Stopped] was called and
// [Subscriber.Healthy] says why. Everything else is retried for ever.
//
// Cancelling ctx drains as [Subscriber.Close] does: handlers under way may finish, and are not cancelled at once.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, ErrClosed)
	}
	if !validTopic(topic) {
		return nil, fmt.Errorf("subscribe: %w: %q", ErrInvalidTopic, topic)
	}
	cfg := s.cfg.GroupConfig
	if cfg.InstanceID != "" {
		cfg.InstanceID += "." + topic // one member per topic, each with a name of its own
	}
	output := make(chan *message.Message)
	m := newMember(ctx, memberConfig{
		GroupConfig: cfg,
		topics:      []string{topic},
		batch:       s.cfg.Window,
		deliver:     feeder{cfg.Group, output}.deliver,
	}, s.log.With("topic", topic))
	s.members = append(s.members, m)
	go func() {
		defer close(output)
		m.run()
	}()
	return output, nil
}

// Close stops handing out messages, lets handlers finish within the drain timeout, commits what they acknowledged,
// leaves the group and closes the channels. Calling it again waits for the same.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	members := s.members
	s.mu.Unlock()
	for _, m := range members {
		m.cancel()
	}
	for _, m := range members {
		<-m.done
	}
	return nil
}

// Healthy reports why nothing is consumed: a subscription that stopped for good, one that has not been a member of its
// group for [GroupConfig.UnhealthyAfter], or for as long a partition with records that the broker has and nobody
// receives, or one that it has not let this client read for [GroupConfig.FailingAfter]. A partition that waits for its
// consumer is healthy.
func (s *Subscriber) Healthy(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for _, m := range s.members {
		problems = append(problems, m.healthy())
	}
	return errors.Join(problems...)
}
