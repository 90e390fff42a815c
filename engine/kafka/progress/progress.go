// Package progress says how the reading of topic-partitions gets on: what moves, what does not, and since when.
package progress

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Progress is how far the worker of a partition is, for health checks and metrics.
type Progress struct {
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

// New is the progress of a partition on which nothing is done yet.
func New(now func() time.Time) *Progress { return &Progress{now: now} }

// Begin notes that the handler is called.
func (p *Progress) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handling = p.now()
}

// End notes that its call has returned, how many of its records are dealt with, and why not all of them.
func (p *Progress) End(handled int, err error) {
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

// Into is the context of a call under which [Pausing] is heard.
func (p *Progress) Into(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// Pausing says from inside a handler that its call goes on after a pause: an attempt has failed with err and will be
// repeated, or, with a nil err, nothing fails any more. ctx is the handler's or a message's; another one is ignored.
// Until resumed is called the call is no stall, however long that takes, and then it has its time anew: so no outage
// stops a member. With failures for longer than a member is patient the partition is unhealthy until it hears of none,
// or a call ends well.
func Pausing(ctx context.Context, err error) (resumed func()) {
	p, ok := ctx.Value(progressKey{}).(*Progress)
	if !ok {
		return func() {}
	}
	p.pause(err)
	return p.resume
}

func (p *Progress) pause(err error) {
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

func (p *Progress) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused, p.handling = false, p.now()
	}
}

// Received notes that the broker gives what there is.
func (p *Progress) Received() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread, p.refused = time.Time{}, time.Time{}
}

// Admitted notes that the broker answers fetches.
func (p *Progress) Admitted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = time.Time{}
}

// TurnedAway notes that the broker gives nothing to read: the topic is gone, or this client has no right to it.
func (p *Progress) TurnedAway(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		p.refused = p.now()
	}
	p.refusal = err
}

// Waiting notes that a record lies at offset and has not come.
func (p *Progress) Waiting(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread.IsZero() {
		p.unread, p.unreadAt = p.now(), offset
	}
}

// Stalled says for how long the partition has been stuck by now, and with what; zero when it is not.
func (p *Progress) Stalled(now time.Time, handlerLimit time.Duration) (time.Duration, string) {
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

// Failed says for how long the handler has been failing by now, and with what; nil when it is not.
func (p *Progress) Failed(now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.failing), p.failure
}

// Shut says for how long the broker has given nothing to read by now, and why; nil when it does.
func (p *Progress) Shut(now time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		return 0, nil
	}
	return now.Sub(p.refused), p.refusal
}
