package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/twinbox/engine/failure"
	_ "example.com/twinbox/engine/failure/kafkaerrors" // what a broker's errors mean
)

// progress is what the worker of a partition has got done, for those who watch it.
type progress struct {
	now      func() time.Time
	mu       sync.Mutex
	handling time.Time // since when the present call runs; zero: none does
	paused   bool      // it waits for its next attempt
	failing  time.Time // since when calls have acknowledged nothing; zero: they do
	failure  error
	unread   time.Time // since when a record is known to wait unread; zero: none is
	unreadAt int64
	refused  time.Time // since when the broker gives nothing to read; zero: it does
	refusal  error
}

func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handling = p.now()
}

func (p *progress) end(handled int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.failing, p.failure = time.Time{}, nil
	case handled > 0 || p.failing.IsZero():
		p.failing, p.failure = p.now(), err
	default:
		p.failure = err
	}
	p.handling, p.paused = time.Time{}, false
}

type progressKey struct{}

// Pausing says from inside a [Handler] that its call goes on after a pause: an attempt has failed with err and will be
// repeated, or, with a nil err, nothing fails any more. ctx is the handler's or a message's; another one is ignored.
// Until resumed is called the call is no stall, however long that takes, and then it has [ConsumerConfig.HandlerLimit]
// anew: so no outage stops the member. With failures for longer than [GroupConfig.FailingAfter] the partition is
// unhealthy until it hears of none, or a call ends well.
func Pausing(ctx context.Context, err error) (resumed func()) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return func() {}
	}
	p.pause(err)
	return p.resume
}

func (p *progress) pause(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
	switch {
	case err == nil:
		p.failing, p.failure = time.Time{}, nil
	case p.failing.IsZero():
		p.failing, p.failure = p.now(), err
	default:
		p.failure = err
	}
}

func (p *progress) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused, p.handling = false, p.now()
	}
}

// received notes that the broker gives what there is.
func (p *progress) received() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread, p.refused = time.Time{}, time.Time{}
}

// admitted notes that the broker gives to read, whatever that is.
func (p *progress) admitted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = time.Time{}
}

// turnedAway notes that the broker gives nothing to read: the topic is gone, or this client has no right to it.
func (p *progress) turnedAway(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		p.refused = p.now()
	}
	p.refusal = err
}

// waiting notes that a record lies at offset and has not come.
func (p *progress) waiting(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread.IsZero() {
		p.unread, p.unreadAt = p.now(), offset
	}
}

// stalled says for how long the partition has been stuck by now, and with what; zero when it is not.
func (p *progress) stalled(now time.Time, handlerLimit time.Duration) (time.Duration, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if handlerLimit > 0 && !p.handling.IsZero() && !p.paused && now.Sub(p.handling) > handlerLimit {
		running := now.Sub(p.handling)
		return running - handlerLimit, fmt.Sprintf("the handler has not returned for %s", running.Round(time.Millisecond))
	}
	if !p.unread.IsZero() {
		return now.Sub(p.unread), fmt.Sprintf("offset %d can be read, but the client does not deliver it", p.unreadAt)
	}
	return 0, ""
}

// failed says for how long the handler has been failing by now, and with what; nil when it is not.
func (p *progress) failed(now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.failing), p.failure
}

// shut says for how long the broker has given nothing to read by now, and why; nil when it does.
func (p *progress) shut(now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		return 0, nil
	}
	return now.Sub(p.refused), p.refusal
}

func (p *partition) stall(now time.Time) *StallError {
	stuck, reason := p.progress.stalled(now, p.member.cfg.handlerLimit)
	if stuck <= 0 {
		return nil
	}
	return &StallError{
		Group: p.member.cfg.Group, Topic: p.at.topic, Partition: p.at.partition, For: stuck, Reason: reason,
	}
}

// stopIfStalled ends the whole membership: the process is to be started again.
func (p *partition) stopIfStalled() {
	now := p.member.cfg.Now()
	if stall := p.stall(now); stall != nil && stall.For > p.member.cfg.StopAfter {
		p.member.stop(stall)
	}
}

// healthy reports a stall, a handler that keeps failing, and a broker that gives nothing to read. The last two never
// end the membership: what the handler needs is down, or a right is missing, and starting again would not help.
func (p *partition) healthy() error {
	now, patience := p.member.cfg.Now(), p.member.cfg.FailingAfter
	if stall := p.stall(now); stall != nil && stall.For > p.member.cfg.UnhealthyAfter {
		return stall
	}
	if failing, err := p.progress.failed(now); err != nil && failing > patience {
		return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", p.at.topic, p.at.partition,
			failing.Round(time.Millisecond), err)
	}
	if shut, err := p.progress.shut(now); err != nil && shut > patience {
		return fmt.Errorf("consume %s/%d: cannot be read for %s: %s: %w", p.at.topic, p.at.partition,
			shut.Round(time.Millisecond), failure.Examine(err).Code, err)
	}
	return nil
}
