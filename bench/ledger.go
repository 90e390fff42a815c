package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/outbox/relay"
)

// ledger notes when the broker acknowledged each event of a run. It wraps the publisher under test: an event is
// acknowledged when the call that carried it has returned without naming it as failed.
type ledger struct {
	message.Publisher
	began time.Time

	mu   sync.Mutex
	at   []time.Duration // since began; 0: not acknowledged
	left int
	err  error
	done chan struct{} // closed when all are acknowledged
}

func newLedger(p message.Publisher, events int) *ledger {
	l := &ledger{
		Publisher: p, began: time.Now(), at: make([]time.Duration, events), left: events, done: make(chan struct{}),
	}
	if events == 0 {
		close(l.done)
	}
	return l
}

// Publish hands the call on.
func (l *ledger) Publish(topic string, msgs ...*message.Message) error {
	err := l.Publisher.Publish(topic, msgs...)
	l.note(msgs, err)
	return err
}

// PublishContext hands the call on, with its context if the publisher under test takes one.
func (l *ledger) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	p, ok := l.Publisher.(relay.ContextPublisher)
	if !ok {
		return l.Publish(topic, msgs...)
	}
	err := p.PublishContext(ctx, topic, msgs...)
	l.note(msgs, err)
	return err
}

// note takes the result of a call.
func (l *ledger) note(msgs []*message.Message, err error) {
	now := max(time.Since(l.began), 1)
	var partial interface{ FailedIndexes() map[int]error }
	if err != nil && !errors.As(err, &partial) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range msgs {
		if partial != nil && partial.FailedIndexes()[i] != nil {
			continue
		}
		n, err := numberOf(m.UUID)
		if err != nil || n >= len(l.at) {
			l.err = fmt.Errorf("acknowledged message %q: %w", m.UUID, errForeignID)
			continue
		}
		if l.at[n] != 0 {
			continue // sent again
		}
		l.at[n] = now
		if l.left--; l.left == 0 {
			close(l.done)
		}
	}
}

// wait returns when every event is acknowledged, or with an error that says how many are not.
func (l *ledger) wait(ctx context.Context) error {
	select {
	case <-l.done:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Errorf("%d of %d events not acknowledged: %w", l.left, len(l.at), context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// acknowledged returns how many events were, and when the last one.
func (l *ledger) acknowledged() (count int, last time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.at {
		last = max(last, at)
	}
	return len(l.at) - l.left, last
}

// times returns a copy: 0 for what is not acknowledged.
func (l *ledger) times() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.at...)
}

// accepting is a publisher that takes everything at once: what remains is the caller's cost.
type accepting struct{}

func (accepting) Publish(string, ...*message.Message) error                         { return nil }
func (accepting) PublishContext(context.Context, string, ...*message.Message) error { return nil }
func (accepting) Close() error                                                      { return nil }
