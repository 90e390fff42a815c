package producer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka"
)

// maxRoundRecords is how many records of waiting calls are sent together at most; one call may exceed it.
const maxRoundRecords = 20_000

// Publisher is a [message.Publisher] that sends the messages of a call together, in as few requests as possible, and
// keeps the order of each key through every failure; the package documentation says how. It is safe for concurrent use:
// calls that arrive while requests are under way are sent together in the next round.
//
// It connects on first use, so a broker that is down does not keep a service from starting; use admin.Ping to ask.
type Publisher struct {
	cfg     kafka.Config
	calls   chan *call
	closing context.Context //nolint:containedctx // of the publisher: Close ends it
	stop    context.CancelFunc
	done    chan struct{}
	layouts sync.Pool // of *layout
	spread  atomic.Pointer[map[string]int32]
	err     error // of closing the client; read after done
}

// New checks the configuration and starts the publisher's one goroutine, which [Publisher.Close] ends.
func New(cfg kafka.Config, log *slog.Logger) (*Publisher, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure publisher: %w", err)
	}
	p := &Publisher{
		cfg:     cfg,
		calls:   make(chan *call),
		done:    make(chan struct{}),
		layouts: sync.Pool{New: func() any { return new(layout) }},
	}
	p.closing, p.stop = context.WithCancel(context.Background())
	p.spread.Store(&map[string]int32{})
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	go p.run(newSender(cfg, &p.spread, p.closing, log))
	return p, nil
}

// Publish returns nil when every message is acknowledged by all in-sync replicas, and a [*kafka.PublishError] that
// names the others when not. It returns within the configured PublishTimeout. The messages must not be changed before
// it returns, nor afterwards when it reports an unknown outcome.
func (p *Publisher) Publish(topic string, msgs ...*message.Message) error {
	return p.PublishContext(context.Background(), topic, msgs...)
}

// PublishContext is [Publisher.Publish] that also returns when ctx ends; what is not acknowledged by then is reported
// with an unknown outcome.
func (p *Publisher) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	l := p.layouts.Get().(*layout)
	l.messages(msgs)
	return p.publish(ctx, topic, l)
}

// PublishEvents is [Publisher.PublishContext] of the events' messages, byte for byte, without making them: a message
// carries a map of its headers, which costs more than everything else that is done to it here.
func (p *Publisher) PublishEvents(ctx context.Context, topic string, events ...*cloudevent.Event) error {
	l := p.layouts.Get().(*layout)
	l.events(events)
	return p.publish(ctx, topic, l)
}

// publish uses the layout again if every record was acknowledged. Otherwise the sender may still hold some of it: a
// request that timed out is sent again, or lies in a connection's buffer.
func (p *Publisher) publish(ctx context.Context, topic string, l *layout) error {
	if len(l.records) == 0 {
		return nil
	}
	deadline := time.Now().Add(p.cfg.PublishTimeout)
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, ErrTimeout)
	defer cancel()
	call := newCall(topic, l.records, deadline, p.cfg.MaxMessageBytes)
	calls, closing := p.calls, p.closing.Done()
	if call.known == len(call.records) {
		calls = nil // none of its records can be sent at all, which takes no broker to say
	}
	for {
		select {
		case calls <- call:
			calls, closing = nil, nil // from now on the sender brings it to an end, also when it closes
			continue
		case <-closing:
			return fmt.Errorf("publish to %s: %w", topic, kafka.ErrClosed)
		case <-ctx.Done():
			call.failAll(&RecordError{Err: context.Cause(ctx), unknown: calls == nil})
		case <-call.done:
		}
		if call.failed {
			return call.result()
		}
		l.reset()
		p.layouts.Put(l)
		return nil
	}
}

// SpreadKeys sets over how many partitions the keys of each topic are spread from the next request on; other topics'
// keys are spread over all partitions there are. Partitions that are added to a topic then stay empty until it is
// called again with the new count, and each key stays where its earlier events are. Records of a topic that has fewer
// partitions than that are not sent: their calls fail, and may be repeated.
func (p *Publisher) SpreadKeys(topics map[string]int32) { p.spread.Store(&topics) }

// run owns the sender: nothing else touches sequences, partitions or the client.
func (p *Publisher) run(s *sender) {
	defer close(p.done)
	for {
		select {
		case first := <-p.calls:
			s.send(p.gather(first))
		case <-p.closing.Done():
			if s.client != nil {
				p.err = s.client.Close()
			}
			return
		}
	}
}

// gather adds the calls that wait already, without waiting for more.
func (p *Publisher) gather(first *call) []*call {
	calls := []*call{first}
	for n := len(first.records); n < maxRoundRecords; {
		select {
		case next := <-p.calls:
			calls = append(calls, next)
			n += len(next.records)
		default:
			return calls
		}
	}
	return calls
}

// Close waits for the requests under way, then for the connections. Calls that wait to be sent return
// [kafka.ErrClosed]. Calling it again does nothing.
func (p *Publisher) Close() error {
	p.stop()
	<-p.done
	if p.err != nil {
		return fmt.Errorf("close publisher: %w", p.err)
	}
	return nil
}

// call is one call of Publish on its way: its records, and what is known of each.
type call struct {
	topic    string
	deadline time.Time
	records  []record
	blocked  map[string]int // keys of which a record failed alone, and its index; owned by the sender

	mu     sync.Mutex // of the records' fates, too
	known  int
	failed bool
	done   chan struct{} // closed when every record is settled
}

// isAcknowledged is the fate of a record that all in-sync replicas have.
var isAcknowledged = &RecordError{}

// record is one message in the form in which it is sent.
type record struct {
	call  *call
	index int
	key   string // "": no key
	size  int
	data  sarama.Record
	fate  *RecordError // nil: not known yet, and it may be sent
}

// newCall settles at once those records that cannot be sent at all.
func newCall(topic string, records []record, deadline time.Time, maxBytes int) *call {
	c := &call{topic: topic, deadline: deadline, records: records, done: make(chan struct{})}
	isTopic := kafka.ValidTopic(topic)
	for i := range records {
		r := &records[i]
		r.call, r.index = c, i
		if !isTopic {
			r.settle(&RecordError{Err: fmt.Errorf("%w: %q", kafka.ErrInvalidTopic, topic), permanent: true})
		} else if size := r.size + batchOverhead; size > maxBytes {
			r.settle(&RecordError{Err: fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, maxBytes), permanent: true})
			c.block(r)
		}
	}
	return c
}

// block holds back the records of the same key behind this one; a record without a key has none.
func (c *call) block(r *record) {
	if first, blocked := c.blocked[r.key]; r.key == "" || blocked && first < r.index {
		return
	}
	if c.blocked == nil {
		c.blocked = make(map[string]int)
	}
	c.blocked[r.key] = r.index
}

// settle notes the record's fate: [isAcknowledged] or why it failed. The first one counts; of a call that has expired
// that is Publish's, which has returned.
func (r *record) settle(fate *RecordError) {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.fate != nil {
		return
	}
	r.fate = fate
	c.failed = c.failed || fate != isAcknowledged
	if c.known++; c.known == len(c.records) {
		close(c.done)
	}
}

// isSendable reports whether the record is still to be sent, and fails it if its key is held back.
func (r *record) isSendable() bool {
	r.call.mu.Lock()
	settled := r.fate != nil
	r.call.mu.Unlock()
	if settled {
		return false
	}
	if first, blocked := r.call.blocked[r.key]; blocked && r.index > first {
		r.settle(&RecordError{Err: kafka.ErrNotSent})
		return false
	}
	return true
}

// failAll fails what is not settled yet.
func (c *call) failAll(err *RecordError) {
	for i := range c.records {
		c.records[i].settle(err)
	}
}

// result is the error of the failed call, once every record is settled.
func (c *call) result() error {
	failed := make(map[int]error)
	for i := range c.records {
		if fate := c.records[i].fate; fate != isAcknowledged {
			failed[i] = fate
		}
	}
	return &kafka.PublishError{Topic: c.topic, Failed: failed}
}
