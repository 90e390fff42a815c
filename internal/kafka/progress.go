package kafka

import (
	"fmt"
	"sync"
	"time"
)

// progress is what the worker of a partition has got done, for those who watch it.
type progress struct {
	mu       sync.Mutex
	handling time.Time // since when the present call runs; zero: none does
	failing  time.Time // since when calls have acknowledged nothing; zero: they do
	failure  error
	unread   time.Time // since when a record is known to wait unread; zero: none is
	unreadAt int64
}

func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handling = time.Now()
}

func (p *progress) end(handled int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.failing, p.failure = time.Time{}, nil
	case handled > 0 || p.failing.IsZero():
		p.failing, p.failure = time.Now(), err
	default:
		p.failure = err
	}
	p.handling = time.Time{}
}

func (p *progress) received() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread = time.Time{}
}

// waiting notes that a record lies at offset and has not come.
func (p *progress) waiting(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread.IsZero() {
		p.unread, p.unreadAt = time.Now(), offset
	}
}

// stalled says since when the partition has been stuck, and with what; zero when it is not.
func (p *progress) stalled(handlerLimit time.Duration) (since time.Time, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit := p.handling.Add(handlerLimit); handlerLimit > 0 && !p.handling.IsZero() && time.Now().After(limit) {
		return limit, fmt.Sprintf("the handler has not returned for %s", time.Since(p.handling).Round(time.Millisecond))
	}
	if !p.unread.IsZero() {
		return p.unread, fmt.Sprintf("offset %d can be read, but the client does not deliver it", p.unreadAt)
	}
	return time.Time{}, ""
}

// failed says since when the handler has been failing, and with what; zero when it is not.
func (p *progress) failed() (since time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing, p.failure
}

// lookEvery is how often a partition without records looks whether there are some.
func (c GroupConfig) lookEvery() time.Duration { return max(c.UnhealthyAfter/4, time.Millisecond) }

func (p *partition) stall() *StallError {
	since, reason := p.progress.stalled(p.member.cfg.handlerLimit)
	if since.IsZero() {
		return nil
	}
	return &StallError{
		Group: p.member.cfg.Group, Topic: p.at.topic, Partition: p.at.partition, For: time.Since(since), Reason: reason,
	}
}

// stopIfStalled ends the whole membership: the process is to be started again.
func (p *partition) stopIfStalled() {
	if stall := p.stall(); stall != nil && stall.For > p.member.cfg.StopAfter {
		p.member.stop(stall)
	}
}

// healthy reports a stall, and a handler that keeps failing. The latter never ends the membership: most likely what the
// handler needs is down, and starting again would not help.
func (p *partition) healthy() error {
	patience := p.member.cfg.UnhealthyAfter
	if stall := p.stall(); stall != nil && stall.For > patience {
		return stall
	}
	if since, err := p.progress.failed(); !since.IsZero() && time.Since(since) > patience {
		return fmt.Errorf("consume %s/%d: the handler has been failing for %s: %w", p.at.topic, p.at.partition,
			time.Since(since).Round(time.Millisecond), err)
	}
	return nil
}
