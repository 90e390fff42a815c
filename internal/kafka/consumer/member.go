package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka/internal/reader"
)

// settings are sarama's for this member. Its channels count records, not bytes: they hold next to nothing.
func (c Config) settings() *sarama.Config {
	cfg := c.Consumer()
	cfg.ChannelBufferSize = 1
	if c.Positions != nil {
		cfg.Consumer.Offsets.AutoCommit.Interval = c.CommitInterval / 2 // see partition.work
	}
	return cfg
}

const (
	// stable is how long a session must have lasted for the next attempt to follow without a growing wait.
	stable = 5 * time.Second
	// maxReconnectBackoff keeps no broker that is back waiting.
	maxReconnectBackoff = 2 * time.Second
)

// join is a member of the group until the consumer's context ends, connecting again after every failure.
func (c *Consumer) join() {
	defer c.cancel()
	pauses := failure.Backoff{Min: c.cfg.ReconnectBackoff, Max: maxReconnectBackoff}
	for c.ctx.Err() == nil {
		started := c.cfg.Now()
		if err := c.connect(); err != nil {
			c.trouble(err)
		}
		c.become(false)
		if c.cfg.Now().Sub(started) > stable {
			pauses.Reset()
		}
		_ = failure.Sleep(c.ctx, pauses.Next())
	}
	if err := c.leave(); err != nil {
		c.log.Warn("leave the group", "error", err)
	}
}

// connect is one connection to the group, for as many sessions as it lasts.
func (c *Consumer) connect() error {
	cfg := c.cfg.settings()
	open := newConnections(cfg, c.cfg.RequestTimeout)
	watch(cfg, func() { open.joining.Store(true) }, func(topics map[string][]int32) {
		open.joining.Store(false)
		c.assigned(topics)
	})
	client, err := newCoordinatedClient(c.cfg.Brokers, cfg, open)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(c.cfg.Group, client)
	if err != nil {
		return errors.Join(fmt.Errorf("make group: %w", err), client.Close())
	}
	batches := reader.New(c.cfg.Brokers, c.cfg.Client())
	c.mu.Lock()
	c.group, c.reader = group, batches
	c.mu.Unlock()
	connected, end := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	beside.Go(func() { c.cutWhenLeaving(connected, open) })
	beside.Go(func() { c.watchTopic(connected) })
	beside.Go(func() { c.watchStalls(connected) })
	beside.Go(func() {
		for err := range group.Errors() {
			c.report(err)
		}
	})
	for c.ctx.Err() == nil && err == nil {
		began := c.cfg.Now()
		err = group.Consume(c.ctx, []string{c.topic}, claims{c})
		c.become(false)
		if err == nil && c.cfg.Now().Sub(began) < stable {
			break // a session that ends at once is a failure that sarama does not call one
		}
	}
	closeErr := errors.Join(group.Close(), batches.Close())
	end()
	beside.Wait()
	closeErr = errors.Join(closeErr, client.Close())
	if errors.Is(err, sarama.ErrFencedInstancedId) {
		c.report(err)
	}
	if c.ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, closeErr)
}

// watchStalls ends the whole membership when a partition is stuck: the process is to be started again.
func (c *Consumer) watchStalls(connected context.Context) {
	for failure.Sleep(connected, c.cfg.LookEvery) == nil {
		for _, s := range c.Standings() {
			if err := c.stalled(s, c.cfg.StopAfter); err != nil {
				c.stop(err)
			}
		}
	}
}

// report receives what sarama does not return: errors of single partitions, of heartbeats and of commits.
func (c *Consumer) report(err error) {
	at, isPartition := errors.AsType[*sarama.ConsumerError](err)
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		c.stop(fmt.Errorf("consume as %s: %w %q", c.cfg.Group, ErrFenced, c.cfg.InstanceID))
	case errors.Is(err, sarama.ErrOffsetOutOfRange) && isPartition:
		c.stop(c.reasonAt(at.Topic, at.Partition, fmt.Errorf("%w: %w", ErrOffsetGone, at.Err)))
	default:
		c.trouble(err)
	}
	if isPartition {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p := c.partitions[at.Partition]; p != nil {
			signal(p.suspects) // it looks for itself at what sarama could not read
		}
	}
}

// assigned is called by the balance strategy, before sarama acts on the assignment.
func (c *Consumer) assigned(topics map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, p := range c.partitions {
		if !slices.Contains(topics[c.topic], number) {
			p.leave(errRevoked)
		}
	}
}

// claims is a [sarama.ConsumerGroupHandler].
type claims struct{ *Consumer }

// Setup implements [sarama.ConsumerGroupHandler].
func (c claims) Setup(session sarama.ConsumerGroupSession) error {
	c.mu.Lock()
	c.session = session
	c.mu.Unlock()
	c.become(true)
	return nil
}

// Cleanup implements [sarama.ConsumerGroupHandler].
func (claims) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements [sarama.ConsumerGroupHandler]: it reads one partition until it is gone.
func (c claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	c.mu.Lock()
	p := newPartition(c.Consumer, session, claim)
	c.partitions[p.at.Partition] = p
	// sarama remembers that it was to leave the partition out, also for a later session of the same connection.
	c.group.Resume(map[string][]int32{p.at.Topic: {p.at.Partition}})
	c.mu.Unlock()
	if hook := c.cfg.Hooks.Assigned; hook != nil {
		hook(p.at.Topic, p.at.Partition, claim.InitialOffset())
	}
	p.log.Debug("partition assigned", "offset", claim.InitialOffset())

	idle := p.own(func() {
		if p.identify() {
			p.work()
		}
	})

	p.log.Debug("partition lost")
	c.mu.Lock()
	delete(c.partitions, p.at.Partition)
	c.mu.Unlock()
	if hook := c.cfg.Hooks.Lost; hook != nil {
		hook(p.at.Topic, p.at.Partition, idle)
	}
	return nil
}
