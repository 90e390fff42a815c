package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
)

var (
	errPublishTimeout = errors.New("outbox: the publisher did not answer in time")
	// errBehind is the result of a record whose key failed earlier in the call. The publisher may have taken it.
	errBehind = errors.New("outbox: an earlier record of the key failed")
)

// publishCall is the publishing of some records. It may outlive its session; the next call waits for its end.
type publishCall struct {
	*Relay
	results  []error // nil: taken
	places   []*event.Origin
	repeated atomic.Bool // the log may have some of them twice
	ended    chan struct{}
}

func (c *publishCall) wait(d time.Duration) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(d):
		return errPublishTimeout
	}
}

func (r *Relay) start(ctx context.Context, records []record) *publishCall {
	c := &publishCall{
		Relay: r, ended: make(chan struct{}),
		results: make([]error, len(records)), places: make([]*event.Origin, len(records)),
	}
	r.call = c
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), r.cfg.PublishTimeout, errPublishTimeout)
	go func() {
		defer close(c.ended)
		defer cancel()
		fault.Here("relay.publish.before")
		began := time.Now()
		var topics sync.WaitGroup
		for topic, indexes := range groupByTopic(records) {
			topics.Go(func() { c.publishTopic(ctx, topic, records, indexes) })
		}
		topics.Wait()
		r.metrics.seconds.Observe(time.Since(began).Seconds())
		r.metrics.batch.Observe(float64(len(records)))
		fault.Here("relay.publish.after")
	}()
	return c
}

func groupByTopic(records []record) map[string][]int {
	topics := map[string][]int{}
	for i := range records {
		topics[records[i].Topic] = append(topics[records[i].Topic], i)
	}
	return topics
}

// publishTopic makes the call for one topic. A record behind its key's first failure counts as failed, even if the
// publisher took it.
func (c *publishCall) publishTopic(ctx context.Context, topic string, records []record, indexes []int) {
	messages, events := make([]*message.Message, len(indexes)), make([]*event.Event, len(indexes))
	for i, index := range indexes {
		events[i] = &records[index].Event
		messages[i] = records[index].message()
	}
	end := c.cfg.Spans.Send(topic, events)
	publish := singly{c.cfg.Publisher}.PublishAcked
	if log, is := c.cfg.Publisher.(Log); is {
		publish = log.PublishAcked
	}
	repeated, err := publish(ctx, topic, messages...)
	if repeated {
		c.repeated.Store(true)
	}
	partial, isPartial := errors.AsType[FailedIndexes](err)
	var first error
	failed := map[string]bool{}
	for i, index := range indexes {
		why, key := err, events[i].Key
		if isPartial {
			why = partial.FailedIndexes()[i]
		}
		if failed[key] {
			why = errBehind
		}
		c.results[index] = why
		if place, is := event.OriginFrom(messages[i].Context()); is {
			c.places[index] = &place
		}
		if why == nil {
			c.metrics.published.WithLabelValues(topic).Inc()
			continue
		}
		failed[key] = true
		first = cmp.Or(first, why)
		c.metrics.failures.WithLabelValues(topic, classOf(why)).Inc()
	}
	end(first)
}

// singly gives a publisher that is no [Log] one message per call: an error is of that message.
type singly struct{ message.Publisher }

func (p singly) PublishAcked(ctx context.Context, topic string, msgs ...*message.Message) (repeated bool, err error) {
	failed, stopped := failedIndexes{}, map[string]bool{}
	for i, m := range msgs {
		key := m.Metadata.Get(event.KeyMetadata)
		switch {
		case stopped[key]:
			continue
		case ctx.Err() != nil:
			err = unfinishedError{context.Cause(ctx)}
		default:
			err = p.Publish(topic, m)
		}
		if err != nil {
			failed[i], stopped[key] = err, true
		}
	}
	if len(failed) == 0 {
		return false, nil
	}
	return false, failed
}

type failedIndexes map[int]error

func (f failedIndexes) Error() string                { return fmt.Sprintf("%d messages failed", len(f)) }
func (f failedIndexes) FailedIndexes() map[int]error { return f }

func classOf(why error) string {
	switch {
	case errors.Is(why, errBehind):
		return "behind"
	case isPermanent(why):
		return "permanent"
	}
	return "transient"
}
