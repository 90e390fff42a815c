package kafka

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

type claim struct {
	consumer *Consumer
	session  sarama.ConsumerGroupSession
	source   sarama.ConsumerGroupClaim

	ctx     context.Context //nolint:containedctx // parent of every message's
	cancel  context.CancelCauseFunc
	leaving context.Context //nolint:containedctx // ends when the claim may hand over no more
	leave   context.CancelFunc

	records []*sarama.ConsumerMessage // taken and not handled, in order

	position    atomic.Int64 // after the last handled record; at first where the partition begins
	isMisplaced atomic.Bool  // the next session must begin at an earlier offset

	mu        sync.Mutex
	state     Standing
	refusedAt time.Time // last
}

type claimKey struct{}

func newClaim(c *Consumer, session sarama.ConsumerGroupSession, source sarama.ConsumerGroupClaim) *claim {
	p := &claim{
		consumer: c, session: session, source: source,
		state: Standing{Topic: source.Topic(), Partition: source.Partition()},
	}
	p.leaving, p.leave = context.WithCancel(session.Context())
	p.ctx, p.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(c.ctx), claimKey{}, p))
	return p
}

func (p *claim) run() {
	defer p.leave()
	defer p.cancel(errPartitionLost)
	context.AfterFunc(p.session.Context(), func() {
		if p.isLost() {
			p.cancel(errPartitionLost)
		}
	})
	context.AfterFunc(p.leaving, func() { // the running call may finish
		_ = failure.Sleep(p.ctx, p.consumer.cfg.DrainTimeout)
		p.cancel(errPartitionLost)
	})
	if p.awaitStart() {
		p.work()
	}
	if p.isMisplaced.Load() {
		return
	}
	// A claim that ends before sarama closes its channel ends the session of all.
	for range p.source.Messages() {
	}
}

// isLost reports whether the group ended the session without waiting for this member.
func (p *claim) isLost() bool {
	cause, stop := context.Cause(p.session.Context()), context.Cause(p.consumer.ctx)
	return (stop == nil || errors.Is(stop, ErrFenced)) && !errors.Is(cause, sarama.ErrSessionConsumeClaimExited)
}

func (p *claim) work() {
	c := p.consumer
	pauses := failure.Backoff{Min: c.cfg.Backoff, Max: 50 * c.cfg.Backoff}
	for p.gather() {
		fault.Here("kafka.taken")
		p.begin()
		handled, err := c.handle(p.ctx, p.decodeRecords())
		p.end(err, handled)
		if handled > 0 {
			pauses.Reset()
			p.position.Store(p.records[handled-1].Offset + 1)
			fault.Here("kafka.before_mark")
			p.session.MarkMessage(p.records[handled-1], "")
			fault.Here("kafka.after_mark")
		}
		if p.records = p.records[handled:]; len(p.records) == 0 || p.leaving.Err() != nil {
			continue
		}
		if c.checkPoints(p.ctx); p.leaving.Err() != nil {
			continue
		}
		if !pauses.Began() {
			c.log.Warn("handle messages, trying again", "topic", p.source.Topic(), "partition", p.source.Partition(),
				"offset", p.records[0].Offset, "error", err)
		}
		_ = failure.Sleep(p.leaving, pauses.Next())
	}
}

// comingLimit is how long a batch waits for records that the client is reading.
const comingLimit = 5 * time.Millisecond

// gather takes a batch; false when the partition moves. sarama delivers records singly, so it looks at the log's end.
func (p *claim) gather() bool {
	cfg, source := p.consumer.cfg, p.source.Messages()
	bytes := 0
	for _, r := range p.records {
		bytes += sizeOf(r)
	}
	var waited <-chan time.Time // nil: for ever
	for len(p.records) < cfg.Batch && bytes < cfg.MaxBytes {
		if n := len(p.records); n > 0 && len(source) == 0 {
			if p.records[n-1].Offset+1 >= p.source.HighWaterMarkOffset() {
				break
			}
			if waited == nil {
				waited = time.After(comingLimit)
			}
		}
		select {
		case r, open := <-source:
			if !open {
				return false
			}
			p.records = append(p.records, r)
			bytes += sizeOf(r)
		case <-waited:
			return true
		case <-p.leaving.Done():
			return false
		}
	}
	return p.leaving.Err() == nil
}

func sizeOf(r *sarama.ConsumerMessage) int {
	bytes := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		bytes += len(h.Key) + len(h.Value)
	}
	return bytes
}

func (p *claim) decodeRecords() []*message.Message {
	messages := make([]*message.Message, len(p.records))
	position := p.position.Load()
	for i, r := range p.records {
		var from *int64
		if p.consumer.cfg.Points != nil {
			from = new(position)
		}
		messages[i] = decode(p.ctx, p.consumer.cfg.Group, r, from)
		position = r.Offset + 1
	}
	return messages
}
