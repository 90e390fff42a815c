package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"

	"example.com/twinbox/internal/failure"
)

// Standing is the state of one partition that a member owns.
type Standing struct {
	Topic     string
	Partition int32
	// Handling is when the running call of the handler began; zero: none runs, or it waits for its next attempt.
	Handling time.Time
	// Failing is when attempts at the next records began to fail, and Failure the last error; zero: none fails.
	Failing time.Time
	Failure error
	// Refused is when the broker stopped giving records, and Refusal the reason; zero: it gives them.
	Refused time.Time
	Refusal error
}

// refusalOver is the silence after which a refusal is over: sarama asks more often.
const refusalOver = 5 * time.Second

func (p *claim) standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	if time.Since(p.refusedAt) > refusalOver {
		s.Refused, s.Refusal = time.Time{}, nil
	}
	return s
}

func (p *claim) refused(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.refusedAt) > refusalOver {
		p.state.Refused = now
	}
	p.state.Refusal, p.refusedAt = err, now
}

func (p *claim) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedAt = time.Time{}
	p.state.Handling = time.Now()
}

// end ignores earlier failures if the call handled anything.
func (p *claim) end(err error, handled int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Handling = time.Time{}
	p.state.Failure = err
	if err == nil || handled > 0 {
		p.state.Failing = time.Time{}
	}
	if err != nil && p.state.Failing.IsZero() {
		p.state.Failing = time.Now()
	}
}

// Pausing reports that a handler's call waits: an attempt failed with err, or, with nil, none fails any more. ctx is
// the handler's or a message's; any other is ignored. The call does not count as running until resumed is called.
func Pausing(ctx context.Context, err error) (resumed func()) {
	p, ok := ctx.Value(claimKey{}).(*claim)
	if !ok {
		return func() {}
	}
	p.end(err, 0)
	return p.begin
}

type troubleLog struct {
	watermill.NopLogger
	consumer *Consumer
}

// Error implements [watermill.LoggerAdapter].
func (l troubleLog) Error(_ string, err error, _ watermill.LogFields) { l.consumer.trouble(err) }

// Info implements [watermill.LoggerAdapter]. watermill-kafka reports one refusal of the group here.
func (l troubleLog) Info(text string, _ watermill.LogFields) {
	if text == "Received unknown Sarama error" {
		l.consumer.trouble(sarama.ErrUnknown)
	}
}

// With implements [watermill.LoggerAdapter].
func (l troubleLog) With(watermill.LogFields) watermill.LoggerAdapter { return l }

// troubleOver is the silence after which the same failure is logged again.
const troubleOver = 5 * time.Minute

// trouble logs a repeated failure once.
func (c *Consumer) trouble(err error) {
	if errors.Is(err, sarama.ErrFencedInstancedId) {
		c.cancel(fmt.Errorf("consume as %s: %w %q", c.cfg.Group, ErrFenced, c.cfg.InstanceID))
		return
	}
	if c.ctx.Err() != nil {
		return
	}
	err = classify(err)
	c.cfg.Failed(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, is := errors.AsType[*sarama.ConsumerError](err); is && c.claims[at.Partition] != nil {
		c.claims[at.Partition].refused(classify(at.Err))
	}
	code := failure.Examine(err).Code
	isNews := c.last == nil || code != failure.Examine(c.last).Code || time.Since(c.met) > troubleOver
	if c.last, c.met = err, time.Now(); isNews {
		c.log.Warn("consume failed, trying again", "code", code, "error", err)
	}
}

// Standings returns those of the partitions that this member owns, in no order.
func (c *Consumer) Standings() []Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	standings := make([]Standing, 0, len(c.claims))
	for _, p := range c.claims {
		standings = append(standings, p.standing())
	}
	return standings
}

// Healthy returns why the member consumes nothing: it has been out of its group, refused, failing or in one call of the
// handler for too long.
func (c *Consumer) Healthy(context.Context) error {
	if err := c.isMember(); err != nil {
		return err
	}
	for _, s := range c.Standings() {
		if failing := time.Since(s.Failing); s.Failure != nil && failing > c.cfg.UnhealthyAfter/3 {
			return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", s.Topic, s.Partition,
				failing.Round(time.Millisecond), s.Failure)
		}
		if shut := time.Since(s.Refused); s.Refusal != nil && shut > c.cfg.UnhealthyAfter/3 {
			return fmt.Errorf("consume %s/%d: cannot be read for %s: %s: %w", s.Topic, s.Partition,
				shut.Round(time.Millisecond), failure.Examine(s.Refusal).Code, s.Refusal)
		}
		if called := time.Since(s.Handling); !s.Handling.IsZero() && called > c.cfg.longestCall() {
			return fmt.Errorf("consume %s/%d: one call of the handler has been running for %s", s.Topic, s.Partition,
				called.Round(time.Second))
		}
	}
	return nil
}

func (c *Consumer) isMember() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx == nil:
		return errors.New("consume: not started")
	case c.ctx.Err() != nil && errors.Is(context.Cause(c.ctx), ErrFenced):
		return context.Cause(c.ctx)
	case c.ctx.Err() != nil, !c.joined.IsZero():
		return nil
	}
	reason, patience := "no answer yet", c.cfg.UnhealthyAfter
	if c.last != nil {
		reason, patience = failure.Examine(c.last).Code+": "+c.last.Error(), c.cfg.UnhealthyAfter/3
	}
	if time.Since(c.away) > patience {
		return fmt.Errorf("consume %s: not a member of the group: %s", c.topic, reason)
	}
	return nil
}
