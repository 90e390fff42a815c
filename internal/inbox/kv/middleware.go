package kv

import (
	"cmp"
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

var errPublishes = errors.New("handler returned messages to publish: they would be lost by a crash after the mark")

// Middleware runs a handler unless the consumer has processed the message's id: that of CloudEvents, else its UUID. It
// acknowledges a duplicate. It returns a handler's error, and the event is not remembered.
//
// While the store does not answer it waits, until the message's context ends; then its error is cancelled or transient
// (see failure.Classify). Install Watermill's Retry and PoisonQueue around it, with a filter that keeps those two
// classes out of the queue. It refuses messages that the handler returns.
func (in *Inbox) Middleware(consumer string) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			return nil, in.handle(consumer, msg, next)
		}
	}
}

func (in *Inbox) handle(consumer string, msg *message.Message, next message.HandlerFunc) error {
	ctx, backoff, id := msg.Context(), in.backoff(), cmp.Or(msg.Metadata.Get(event.HeaderID), msg.UUID)
	defer msg.SetContext(ctx)
	for {
		ran := false
		outcome, err := in.process(ctx, consumer, id, func(ctx context.Context) error {
			ran = true
			msg.SetContext(ctx)
			produced, err := next(msg)
			if err == nil && len(produced) > 0 {
				err = failure.AsPermanent(errPublishes)
			}
			return err
		})
		if !ran && errors.Is(err, ErrUnavailable) {
			if stopped := failure.Sleep(ctx, backoff.Next()); stopped == nil {
				continue
			}
		}
		in.metrics.messages.WithLabelValues(consumer, string(outcome)).Inc()
		return err
	}
}
