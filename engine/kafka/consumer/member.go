package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/kafka/internal/reader"
)

// memberConfig is what a [Consumer] makes of its configuration.
type memberConfig struct {
	Config
	topics []string
	turns  *turns // of the partitions; nil: each calls when it likes
	// deliver hands the records over and returns how many of them, from the first on, are dealt with. It returns soon
	// after the partition's context has ended, and hands out nothing after partition.leaving was closed.
	deliver func(p *partition, batch []entry) (handled int, err error)
}

// settings are sarama's for this member. Its channels count records, not bytes: they hold next to nothing.
func (c memberConfig) settings() *sarama.Config {
	cfg := c.Consumer()
	cfg.ChannelBufferSize = 1
	if c.Positions != nil {
		cfg.Consumer.Offsets.AutoCommit.Interval = c.CommitInterval / 2 // see noteSoon
	}
	return cfg
}

// stable is how long a session must have lasted for the next attempt to follow without a growing wait.
const stable = 5 * time.Second

// member is one member of the consumer group, through as many connections and sessions as it takes.
type member struct {
	cfg    memberConfig
	log    *slog.Logger
	values context.Context // the caller's; its values go into every message, its end does not
	ctx    context.Context // ends when the membership shall
	cancel context.CancelFunc
	done   chan struct{}
	status *status

	mu         sync.Mutex
	group      sarama.ConsumerGroup        // of the present connection
	reader     *reader.Reader              // of the same
	session    sarama.ConsumerGroupSession // the last one
	partitions map[reader.TopicPartition]*partition
}

func newMember(ctx context.Context, cfg memberConfig, log *slog.Logger) *member {
	m := &member{
		cfg:        cfg,
		log:        log,
		values:     context.WithoutCancel(ctx),
		done:       make(chan struct{}),
		status:     &status{topics: cfg.topics, now: cfg.Now, log: log, since: cfg.Now()},
		partitions: make(map[reader.TopicPartition]*partition),
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m
}

// run consumes until the member's context ends, connecting again after every failure.
func (m *member) run() {
	defer close(m.done)
	defer m.cancel()
	stopClosing := context.AfterFunc(m.ctx, m.status.close)
	defer stopClosing()
	pauses := failure.Backoff{Min: m.cfg.ReconnectBackoff, Max: m.cfg.MaxReconnectBackoff}
	for m.ctx.Err() == nil {
		started := m.cfg.Now()
		if err := m.consume(); err != nil {
			m.trouble(err)
		}
		m.status.left()
		if m.cfg.Now().Sub(started) > stable {
			pauses.Reset()
		}
		pauseUntil(m.ctx.Done(), pauses.Next())
	}
	m.leave()
}

// consume is one connection to the group, for as many sessions as it lasts.
func (m *member) consume() error {
	cfg := m.cfg.settings()
	open := newConnections(cfg, m.cfg.RequestTimeout)
	watch(cfg, func() { open.joining.Store(true) }, func(topics map[string][]int32) {
		open.joining.Store(false)
		m.assigned(topics)
	})
	client, err := newCoordinatedClient(m.cfg.Brokers, cfg, open)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(m.cfg.Group, client)
	if err != nil {
		return errors.Join(fmt.Errorf("make group: %w", err), client.Close())
	}
	stopCutting := m.cutWhenLeaving(open)
	batches := reader.New(m.cfg.Brokers, m.cfg.Client())
	m.mu.Lock()
	m.group, m.reader = group, batches
	m.mu.Unlock()
	var reports sync.WaitGroup
	reports.Go(func() {
		for err := range group.Errors() {
			m.report(err)
		}
	})
	ended := make(chan struct{})
	reports.Go(func() { m.watchTopics(ended) })
	for m.ctx.Err() == nil && err == nil {
		began := m.cfg.Now()
		err = group.Consume(m.ctx, m.cfg.topics, m)
		m.status.left()
		if err == nil && m.cfg.Now().Sub(began) < stable {
			break // a session that ends at once is a failure that sarama does not call one
		}
	}
	close(ended)
	closeErr := errors.Join(group.Close(), batches.Close())
	stopCutting()
	closeErr = errors.Join(closeErr, client.Close())
	reports.Wait()
	if errors.Is(err, sarama.ErrFencedInstancedId) {
		m.report(err)
	}
	if m.ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, closeErr)
}

// report receives what sarama does not return: errors of single partitions, of heartbeats and of commits.
func (m *member) report(err error) {
	var at *sarama.ConsumerError
	isPartition := errors.As(err, &at)
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		m.stop(&FencedError{Group: m.cfg.Group, InstanceID: m.cfg.InstanceID})
	case errors.Is(err, sarama.ErrOffsetOutOfRange) && isPartition:
		m.stop(&OffsetError{Group: m.cfg.Group, Topic: at.Topic, Partition: at.Partition, Err: at.Err})
	default:
		m.trouble(err)
	}
	if isPartition {
		m.suspect(reader.TopicPartition{Topic: at.Topic, Partition: at.Partition})
	}
}

// trouble tells of a failure after which the member tries again.
func (m *member) trouble(err error) {
	m.status.trouble(err)
	if hook := m.cfg.Hooks.Failed; hook != nil {
		hook(err)
	}
}

// stop ends the membership for good.
func (m *member) stop(err error) {
	m.status.stop(err)
	m.cancel()
}

// suspect makes a partition look for itself at what sarama could not read.
func (m *member) suspect(at reader.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.partitions[at]; p != nil {
		p.suspect()
	}
}

// pauseReading makes sarama leave a partition out of its requests, for as long as its connection lasts.
func (m *member) pauseReading(at reader.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.group.Pause(map[string][]int32{at.Topic: {at.Partition}})
}

// resumeReading takes that back: sarama remembers it, also for a later session of the same connection.
func (m *member) resumeReading(at reader.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.group.Resume(map[string][]int32{at.Topic: {at.Partition}})
}

// assigned is called by the balance strategy, before sarama acts on the assignment.
func (m *member) assigned(topics map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, p := range m.partitions {
		if !slices.Contains(topics[at.Topic], at.Partition) {
			p.revoke()
		}
	}
}

// healthy joins what the membership and the partitions have to say.
func (m *member) healthy() error {
	problems := []error{m.status.healthy(m.cfg.UnhealthyAfter, m.cfg.FailingAfter)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.partitions {
		problems = append(problems, p.healthy())
	}
	return errors.Join(problems...)
}

// Setup implements [sarama.ConsumerGroupHandler].
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	m.session = session
	m.mu.Unlock()
	m.status.joined()
	return nil
}

// Cleanup implements [sarama.ConsumerGroupHandler].
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements [sarama.ConsumerGroupHandler]: it reads one partition until it is gone.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	m.mu.Lock()
	p := newWorker(m, session, claim)
	m.partitions[p.at] = p.partition
	m.mu.Unlock()
	m.resumeReading(p.at)
	if hook := m.cfg.Hooks.Assigned; hook != nil {
		hook(p.at.Topic, p.at.Partition, claim.InitialOffset())
	}
	p.log.Debug("partition assigned", "offset", claim.InitialOffset())

	p.run()

	p.log.Debug("partition lost")
	m.mu.Lock()
	delete(m.partitions, p.at)
	m.mu.Unlock()
	if hook := m.cfg.Hooks.Lost; hook != nil {
		hook(p.at.Topic, p.at.Partition, !p.busy.Load())
	}
	return nil
}
