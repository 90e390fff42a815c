package progress

import (
	"context"
	"sync"
	"time"
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
	// Unread is since when a record can be read that the client does not deliver; zero: none.
	Unread time.Time
}

// Standing is how the partition gets on; whose it is, is the caller's to say.
func (p *Progress) Standing() Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Standing{Unread: p.unread}
	if !p.paused {
		s.Handling = p.handling
	}
	if p.failure != nil {
		s.Failing, s.Failure = p.failing, p.failure
	}
	if !p.refused.IsZero() {
		s.Refused, s.Refusal = p.refused, p.refusal
	}
	return s
}

// Watch keeps the standings of partitions whose records another client than consumer.Consumer hands over. What
// [Pausing] says under the context of a call counts. The zero value is ready; safe for concurrent use.
type Watch struct {
	mu sync.Mutex
	of map[place]*Progress
}

type place struct {
	topic     string
	partition int32
}

// Call notes that the handler is called, with the context returned, for a record of the partition. Call end when it has
// returned: an error means that the record comes again.
func (w *Watch) Call(ctx context.Context, topic string, partition int32) (_ context.Context, end func(err error)) {
	at := place{topic, partition}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[at]
	if p == nil {
		if w.of == nil {
			w.of = make(map[place]*Progress)
		}
		p = New(time.Now)
		w.of[at] = p
	}
	p.Begin()
	return p.Into(ctx), func(err error) { p.End(0, err) }
}

// Forget notes that the partition has gone to another member.
func (w *Watch) Forget(topic string, partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, place{topic, partition})
}

// Standings are those of the partitions that had a call, in no order. What the broker gives to read is not known here.
func (w *Watch) Standings() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	standings := make([]Standing, 0, len(w.of))
	for at, p := range w.of {
		s := p.Standing()
		s.Topic, s.Partition = at.topic, at.partition
		standings = append(standings, s)
	}
	return standings
}
