package kafka

import (
	"context"
	"time"
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
