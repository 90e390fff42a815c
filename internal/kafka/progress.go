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
	mu        sync.Mutex
	state     Standing
	refusedAt time.Time // last
}

// refusalOver is after how long a refusal that has not come again is over: sarama asks more often.
const refusalOver = 5 * time.Second

func (p *progress) standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	if time.Since(p.refusedAt) > refusalOver {
		s.Refused, s.Refusal = time.Time{}, nil
	}
	return s
}

// refused notes that the broker gives nothing to read.
func (p *progress) refused(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.refusedAt) > refusalOver {
		p.state.Refused = now
	}
	p.state.Refusal, p.refusedAt = err, now
}

// begin notes that the handler is called, with what the broker gave.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedAt = time.Time{}
	p.state.Handling = time.Now()
}

// end notes what came of a call. Earlier failures count no more if it has dealt with anything.
func (p *progress) end(err error, handled int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Handling = time.Time{}
	if handled > 0 {
		p.state.Failing = time.Time{}
	}
	p.fail(err)
}

// fail notes what the last attempt said.
func (p *progress) fail(err error) {
	switch p.state.Failure = err; {
	case err == nil:
		p.state.Failing = time.Time{}
	case p.state.Failing.IsZero():
		p.state.Failing = time.Now()
	}
}

type progressKey struct{}

// Pausing says from inside a handler that its call goes on after a pause: an attempt has failed with err and will be
// repeated, or, with a nil err, nothing fails any more. ctx is the handler's or a message's; another one is ignored.
// Until resumed is called no call counts as running. It must be called before the handler returns.
func Pausing(ctx context.Context, err error) (resumed func()) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Handling = time.Time{}
	p.fail(err)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.state.Handling = time.Now()
	}
}
