package relay

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// What the relay asks of a publisher beside [message.Publisher], all of it optional.

// ContextPublisher is called instead of Publish: its context ends when the call must.
type ContextPublisher interface {
	PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error
}

// EventPublisher is called instead of both: it takes the events as they are read, and must send what it would send of
// their [cloudevent.Event.Message]. That spares a map per event, which is most of what a message costs. The events must
// not be changed, and not be kept after the call, unless it failed with an unknown outcome.
type EventPublisher interface {
	PublishEvents(ctx context.Context, topic string, events ...*cloudevent.Event) error
}

// FailedIndexes is what a publisher's error has if it knows which messages of the call failed: their indexes and why.
// All others are taken. A key's later messages in the call must not have been taken before its first failed one.
type FailedIndexes interface {
	error
	FailedIndexes() map[int]error
}

// Permanent is what an error has that another attempt cannot cure: the message is too large, the topic takes none of
// its kind. An error of a whole call that is permanent makes the relay send the messages one by one, to find which one
// it refuses.
type Permanent interface {
	error
	Permanent() bool
}

func isPermanent(err error) bool {
	var p Permanent
	return errors.As(err, &p) && p.Permanent()
}

// publishEvents makes one call, in the cheapest way that the publisher has.
func publishEvents(ctx context.Context, p message.Publisher, topic string, events []*cloudevent.Event) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p, ok := p.(EventPublisher); ok {
		return p.PublishEvents(ctx, topic, events...)
	}
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = e.Message()
	}
	if p, ok := p.(ContextPublisher); ok {
		return p.PublishContext(ctx, topic, messages...)
	}
	return p.Publish(topic, messages...)
}
