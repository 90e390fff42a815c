package relay

import (
	"cmp"
	"context"
	"errors"
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
	log     Log // nil: the publisher gets one message at a time
	results []error
	ended   chan struct{}

	places   []*event.Origin
	repeated atomic.Bool // the log may have some of them twice
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
	c.log, _ = r.cfg.Publisher.(Log)
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
	publish := c.publishSingly
	if c.log != nil {
		publish = c.publishTogether
	}
	failures := publish(ctx, topic, messages)
	var first error
	failed := map[string]bool{}
	for i, index := range indexes {
		why, key := failures[i], events[i].Key
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

func (c *publishCall) publishTogether(ctx context.Context, topic string, messages []*message.Message) map[int]error {
	repeated, err := c.log.PublishAcked(ctx, topic, messages...)
	if repeated {
		c.repeated.Store(true)
	}
	if partial, is := errors.AsType[FailedIndexes](err); is {
		return partial.FailedIndexes()
	}
	failures := map[int]error{}
	for i := range messages {
		failures[i] = err
	}
	return failures
}

// publishSingly gives a publisher that reports no indexes one message per call: an error is of that message.
func (c *publishCall) publishSingly(ctx context.Context, topic string, messages []*message.Message) map[int]error {
	failures, failed := map[int]error{}, map[string]bool{}
	for i, m := range messages {
		key := m.Metadata.Get(event.KeyMetadata)
		switch {
		case failed[key]:
			continue
		case ctx.Err() != nil:
			failures[i] = unfinishedError{context.Cause(ctx)}
		default:
			failures[i] = c.cfg.Publisher.Publish(topic, m)
		}
		failed[key] = failures[i] != nil
	}
	return failures
}

func classOf(why error) string {
	switch {
	case errors.Is(why, errBehind):
		return "behind"
	case isPermanent(why):
		return "permanent"
	}
	return "transient"
}
