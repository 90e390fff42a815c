package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/outbox/window"
)

// call is one call of Publish.
type call struct {
	topic  string
	events []*cloudevent.Event
	index  []int // of the events in the flight
}

// callsOf groups the records by topic.
func callsOf(records []window.Record) []*call {
	var calls []*call
	for i := range records {
		r := &records[i]
		at := slices.IndexFunc(calls, func(c *call) bool { return c.topic == r.Event.Topic })
		if at < 0 {
			at = len(calls)
			size := len(records) - i
			calls = append(calls, &call{
				topic: r.Event.Topic, events: make([]*cloudevent.Event, 0, size), index: make([]int, 0, size),
			})
		}
		calls[at].events = append(calls[at].events, &r.Event)
		calls[at].index = append(calls[at].index, i)
	}
	return calls
}

// publish makes the call and writes the results of its own records.
func (c *call) publish(ctx context.Context, p message.Publisher, results []error) {
	err := publishEvents(ctx, p, c.topic, c.events)
	if err == nil {
		return
	}
	var partial FailedIndexes
	switch {
	case errors.As(err, &partial):
		for i, why := range partial.FailedIndexes() {
			if i >= 0 && i < len(c.index) {
				results[c.index[i]] = cmp.Or(why, err)
			}
		}
	case isPermanent(err) && len(c.events) > 1:
		c.publishOneByOne(ctx, p, results)
	default:
		for _, i := range c.index {
			results[i] = err
		}
	}
}

// part: observability, begin

// firstError is the first of the results of its own records.
func (c *call) firstError(results []error) error {
	for _, i := range c.index {
		if results[i] != nil {
			return results[i]
		}
	}
	return nil
}

// part: observability, end

// publishOneByOne finds the events that the publisher refuses. What an earlier call of it has taken is taken again.
func (c *call) publishOneByOne(ctx context.Context, p message.Publisher, results []error) {
	failed := map[string]bool{}
	for i, e := range c.events {
		if failed[e.Key] {
			results[c.index[i]] = errBehind
			continue
		}
		if err := publishEvents(ctx, p, c.topic, []*cloudevent.Event{e}); err != nil {
			results[c.index[i]] = err
			failed[e.Key] = true
		}
	}
}
