package outbox

import (
	"context"
	"errors"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// call is one call of Publish.
type call struct {
	topic   string
	events  []*cloudevent.Event
	records []record
	index   []int // of the events in the flight
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
				events: make([]*cloudevent.Event, 0, size), index: make([]int, 0, size),
			})
		}
		calls[at].events = append(calls[at].events, &r.event)
		calls[at].index = append(calls[at].index, i)
	}
	return calls
}

// send publishes and writes the results of its own records.
func (c *call) send(ctx context.Context, p message.Publisher, results []error) {
	err := publish(ctx, p, c.topic, c.events)
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
	case isPermanent(err) && len(c.events) > 1:
		c.sendOneByOne(ctx, p, results)
	default:
		for _, i := range c.index {
			results[i] = err
		}
	}
}

// sendOneByOne finds the events that the publisher refuses. What an earlier call of it has taken is taken again.
func (c *call) sendOneByOne(ctx context.Context, p message.Publisher, results []error) {
	failed := map[keyName]bool{}
	for i, e := range c.events {
		name := c.records[c.index[i]].name()
		if failed[name] {
			results[c.index[i]] = errBehind
			continue
		}
		if err := publish(ctx, p, c.topic, []*cloudevent.Event{e}); err != nil {
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
