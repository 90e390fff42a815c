package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/fault"
)

// FailedIndexes is what a publisher's error has if it knows which messages of the call failed: their indexes and why.
// All others are taken. A key's later messages in the call must not have been taken before its first failed one.
type FailedIndexes interface {
	error
	FailedIndexes() map[int]error
}

// Permanent is what an error has that another attempt cannot cure: the message is too large, the topic forbidden. An
// error of a whole call that is permanent makes the relay send the messages one by one, to find whose fault it is.
type Permanent interface {
	error
	Permanent() bool
}

func isPermanent(err error) bool {
	var p Permanent
	return errors.As(err, &p) && p.Permanent()
}

// sender makes the calls of Publish. It has at most one flight in the air.
type sender struct {
	publisher message.Publisher
	timeout   time.Duration // of a call
	deadline  time.Duration // of a flight
	metrics   *relayMetrics
	last      *flight
}

// flight is one round of calls, one per topic, in a goroutine of its own: the next page is read meanwhile.
type flight struct {
	records []record
	results []error   // per record; nil: taken
	lostAt  time.Time // when it counts as lost: before the lease is over
	landed  chan struct{}
}

var (
	errPublishTimeout = errors.New("outbox: the publisher did not answer in time")
	// errBehind is the result of a record that may have been taken, but whose key had failed before: it is sent again.
	errBehind = errors.New("outbox: an earlier record of the key failed")
)

// launch sends the records. Their order within a topic is that of their positions.
func (s *sender) launch(ctx context.Context, records []record) *flight {
	f := &flight{
		records: records, results: make([]error, len(records)), lostAt: time.Now().Add(s.deadline),
		landed: make(chan struct{}),
	}
	s.last = f
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.timeout, errPublishTimeout)
	go func() {
		defer close(f.landed)
		defer cancel()
		s.fly(ctx, f)
	}()
	return f
}

// wait returns when the flight has landed. One that is late may still land, with anything; until then nothing else may
// be sent, and the lease is left to run out.
func (f *flight) wait() error { return f.waitFor(time.Until(f.lostAt)) }

func (f *flight) hasLanded() bool {
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

func (f *flight) waitFor(grace time.Duration) error {
	if f.hasLanded() { // however late
		return nil
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-f.landed:
		return nil
	case <-timer.C:
		return errPublishTimeout
	}
}

func (s *sender) busy() bool {
	return s.last != nil && !s.last.hasLanded()
}

// await waits for a late flight.
func (s *sender) await(ctx context.Context) error {
	if s.last == nil {
		return nil
	}
	select {
	case <-s.last.landed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain is await for the end of the relay: not for ever.
func (s *sender) drain(grace time.Duration) error {
	if s.last == nil {
		return nil
	}
	if err := s.last.waitFor(grace); err != nil {
		return fmt.Errorf("stop relay: %w", err)
	}
	return nil
}

func (s *sender) fly(ctx context.Context, f *flight) {
	fault.Here("relay.publish.before")
	began := time.Now()
	calls := callsOf(f.records)
	done := make(chan struct{}, len(calls))
	for _, c := range calls[1:] {
		go func() {
			c.send(ctx, s.publisher, f.results)
			done <- struct{}{}
		}()
	}
	calls[0].send(ctx, s.publisher, f.results)
	for range calls[1:] {
		<-done
	}
	f.holdBack()
	s.metrics.observe(f, time.Since(began))
	fault.Here("relay.publish.after")
}

// holdBack marks everything that follows a key's first failure as failed too, whatever became of it.
func (f *flight) holdBack() {
	var failed map[keyName]bool
	for i, err := range f.results {
		name := f.records[i].name()
		switch {
		case failed[name]:
			f.results[i] = errBehind
		case err != nil:
			if failed == nil {
				failed = map[keyName]bool{}
			}
			failed[name] = true
		}
	}
}

// call is one call of Publish.
type call struct {
	topic    string
	messages []*message.Message
	records  []record
	index    []int // of the messages in the flight
}

// callsOf groups the records by topic.
func callsOf(records []record) []*call {
	var calls []*call
	for i := range records {
		r := &records[i]
		at := slices.IndexFunc(calls, func(c *call) bool { return c.topic == r.topic })
		if at < 0 {
			at = len(calls)
			size := len(records) - i
			calls = append(calls, &call{
				topic: r.topic, records: records,
				messages: make([]*message.Message, 0, size), index: make([]int, 0, size),
			})
		}
		calls[at].messages = append(calls[at].messages, r.message)
		calls[at].index = append(calls[at].index, i)
	}
	return calls
}

// send publishes and writes the results of its own records.
func (c *call) send(ctx context.Context, p message.Publisher, results []error) {
	err := publish(ctx, p, c.topic, c.messages)
	if err == nil {
		return
	}
	var partial FailedIndexes
	switch {
	case errors.As(err, &partial):
		for i, why := range partial.FailedIndexes() {
			if i >= 0 && i < len(c.index) {
				results[c.index[i]] = cmpErr(why, err)
			}
		}
	case isPermanent(err) && len(c.messages) > 1:
		c.sendOneByOne(ctx, p, results)
	default:
		for _, i := range c.index {
			results[i] = err
		}
	}
}

// sendOneByOne finds the messages that the publisher refuses. What an earlier call of it has taken is taken again.
func (c *call) sendOneByOne(ctx context.Context, p message.Publisher, results []error) {
	failed := map[keyName]bool{}
	for i, m := range c.messages {
		name := c.records[c.index[i]].name()
		if failed[name] {
			results[c.index[i]] = errBehind
			continue
		}
		if err := publish(ctx, p, c.topic, []*message.Message{m}); err != nil {
			results[c.index[i]] = err
			failed[name] = true
		}
	}
}

func cmpErr(err, fallback error) error {
	if err == nil {
		return fallback
	}
	return err
}

func publish(ctx context.Context, p message.Publisher, topic string, msgs []*message.Message) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p, ok := p.(interface {
		PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error
	}); ok {
		return p.PublishContext(ctx, topic, msgs...)
	}
	return p.Publish(topic, msgs...)
}

// recent is what was taken and is not yet recorded. It outlives the session: a page that has to be read again because
// the database went away is not sent again. Ids are kept with the positions, since a database that was set back gives a
// position to another event.
type recent struct {
	rows []receipt
}

type receipt struct {
	position int64
	id       [16]byte
}

func (r *record) receipt() receipt { return receipt{r.position, r.id} }

// add forgets rather than grow without bound if nothing gets recorded: that costs duplicates, nothing else.
func (m *recent) add(r *record) {
	if len(m.rows) < maxBatchSize {
		m.rows = append(m.rows, r.receipt())
	}
}

func (m *recent) clear() { m.rows = m.rows[:0] }

// set is for the next session, which asks it of every row.
func (m *recent) set() map[receipt]bool {
	if len(m.rows) == 0 {
		return nil
	}
	set := make(map[receipt]bool, len(m.rows))
	for _, r := range m.rows {
		set[r] = true
	}
	return set
}
