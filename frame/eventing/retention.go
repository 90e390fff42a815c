package eventing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/engine/inbox/retention"
	"example.com/twinbox/engine/kafka/admin"
)

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
