// Package progress says how the reading of topic-partitions gets on: what moves, what does not, and since when.
package progress

import (
	"context"
	"sync"
	"time"

	"example.com/twinbox/internal/kafka"
)

// Standing is the state of one partition that a member owns, and why it makes no progress if it does not.
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
	// Unread is since when a record can be read that the client does not deliver, and UnreadAt its offset; zero: none.
	Unread   time.Time
	UnreadAt int64
}

// Progress is how far the worker of a partition is, for health checks and metrics.
type Progress struct {
	now    func() time.Time
	mu     sync.Mutex
	state  Standing
	paused bool // the present call waits for its next attempt
}

// New is the progress of a partition on which nothing is done yet.
func New(now func() time.Time, topic string, partition int32) *Progress {
	return &Progress{now: now, state: Standing{Topic: topic, Partition: partition}}
}

// Standing is how the partition gets on.
func (p *Progress) Standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Begin notes that the handler is called, with what the broker gave.
func (p *Progress) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Unread, p.state.Refused, p.state.Refusal = time.Time{}, time.Time{}, nil
	p.state.Handling = p.now()
}

// End notes that its call has returned, how many of its records are dealt with, and why not all of them.
func (p *Progress) End(handled int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail(err, handled > 0)
	p.state.Handling, p.paused = time.Time{}, false
}

// fail notes what came of an attempt; others before it that failed count no more if it is a new beginning.
func (p *Progress) fail(err error, anew bool) {
	switch p.state.Failure = err; {
	case err == nil:
		p.state.Failing = time.Time{}
	case anew || p.state.Failing.IsZero():
		p.state.Failing = p.now()
	}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.state.Handling = true, time.Time{}
	p.fail(err, false)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.paused {
			p.paused, p.state.Handling = false, p.now()
		}
	}
}

// Refused notes that the broker gives nothing to read: the topic is gone, or this client has no right to it. Nil means
// that it answers.
func (p *Progress) Refused(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state.Refusal = err; {
	case err == nil:
		p.state.Refused = time.Time{}
	case p.state.Refused.IsZero():
		p.state.Refused = p.now()
	}
}

// Waiting notes that a record lies at the offset and has not come; with a negative one, that none does.
func (p *Progress) Waiting(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case offset < 0:
		p.state.Unread = time.Time{}
	case p.state.Unread.IsZero():
		p.state.Unread, p.state.UnreadAt = p.now(), offset
	}
}

// Watch keeps the standings of partitions whose records another client than consumer.Consumer hands over. What
// [Pausing] says under the context of a call counts. The zero value is ready; safe for concurrent use.
type Watch struct {
	mu sync.Mutex
	of map[kafka.TopicPartition]*Progress
}

// Call notes that the handler is called, with the context returned, for a record of the partition. Call end when it has
// returned: an error means that the record comes again.
func (w *Watch) Call(ctx context.Context, topic string, partition int32) (_ context.Context, end func(err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[kafka.TopicPartition]*Progress)
	}
	at := kafka.TopicPartition{Topic: topic, Partition: partition}
	p := w.of[at]
	if p == nil {
		p = New(time.Now, topic, partition)
		w.of[at] = p
	}
	p.Begin()
	return p.Into(ctx), func(err error) { p.End(0, err) }
}

// Forget notes that the partition has gone to another member.
func (w *Watch) Forget(topic string, partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, kafka.TopicPartition{Topic: topic, Partition: partition})
}

// Standings are those of the partitions that had a call, in no order. What the broker gives to read is not known here.
func (w *Watch) Standings() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	standings := make([]Standing, 0, len(w.of))
	for _, p := range w.of {
		standings = append(standings, p.Standing())
	}
	return standings
}
