package kafka

import (
	"context"
	"sync"
	"time"
)

// Standing is how a member gets on with one partition that it owns.
type Standing struct {
	Topic     string
	Partition int32
	// Handling is since when the handler's present call runs; zero: none does, or it waits for its next attempt.
	Handling time.Time
	// Failing is since when attempts at its next records fail, and Failure is what the last one said; zero: they do not.
	Failing time.Time
	Failure error
	// Refused is since when the broker gives nothing to read, and Refusal is why; zero: it does.
	Refused time.Time
	Refusal error
}

// progress keeps the standing of a partition.
type progress struct {
	mu      sync.Mutex
	state   Standing
	paused  bool // the present call waits for its next attempt
	refusal time.Time
	lasts   bool // a refusal that does not come again and holds
}

func newProgress(topic string, partition int32) *progress {
	return &progress{state: Standing{Topic: topic, Partition: partition}}
}

// refusalOver is after how long a refusal that has not come again is over: sarama asks more often.
const refusalOver = 5 * time.Second

func (p *progress) standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.state; p.lasts || time.Since(p.refusal) < refusalOver {
		return s
	}
	p.state.Refused, p.state.Refusal = time.Time{}, nil
	return p.state
}

// refused notes that the broker gives nothing to read.
func (p *progress) refused(err error, lasts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.state.Refused.IsZero() || !p.lasts && now.Sub(p.refusal) > refusalOver {
		p.state.Refused = now
	}
	p.state.Refusal, p.refusal, p.lasts = err, now, lasts
}

// begin notes that the handler is called, with what the broker gave.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Refused, p.state.Refusal, p.lasts = time.Time{}, nil, false
	p.state.Handling = time.Now()
}

// end notes that its call has returned, how many of its records are dealt with, and why not all of them.
func (p *progress) end(handled int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail(err, handled > 0)
	p.state.Handling, p.paused = time.Time{}, false
}

// fail notes what came of an attempt; others before it that failed count no more if it is a new beginning.
func (p *progress) fail(err error, anew bool) {
	switch p.state.Failure = err; {
	case err == nil:
		p.state.Failing = time.Time{}
	case anew || p.state.Failing.IsZero():
		p.state.Failing = time.Now()
	}
}

type progressKey struct{}

// into is the context of a call under which [Pausing] is heard.
func (p *progress) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// Pausing says from inside a handler that its call goes on after a pause: an attempt has failed with err and will be
// repeated, or, with a nil err, nothing fails any more. ctx is the handler's or a message's; another one is ignored.
// Until resumed is called no call counts as running.
func Pausing(ctx context.Context, err error) (resumed func()) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.state.Handling = true, time.Time{}
	p.fail(err, false)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.paused {
			p.paused, p.state.Handling = false, time.Now()
		}
	}
}
