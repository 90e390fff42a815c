package inbox

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Middleware makes next run once per event, inside the inbox transaction. It returns nil, which acknowledges the
// message, for every final outcome, dead letters included. It returns an error only when the message's context has
// ended: the process is stopping or the partition is gone, nothing was committed, and the event will come again.
//
// It does its own retrying, because an attempt is a transaction: install no Retry or PoisonQueue around it. Middlewares
// between it and the handler run in the transaction, with each attempt. Plain handlers and processors of Watermill's
// cqrs reach it by [TxFromContext]. Under a Router on watermill-kafka a record's origin is what those two say, in
// programs that import package kafka; the consumer group is [Config.Group]. Messages that next returns for publishing
// are refused: they would leave after the commit and be lost by a crash in between; the outbox is for them.
func (in *Inbox) Middleware(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		return nil, in.deliverer.handleOne(msg, next)
	}
}

// BatchFunc handles messages of one partition, in order, and reports how many of them, from the first on, have come to
// a final outcome and may be acknowledged.
type BatchFunc func(ctx context.Context, msgs []*message.Message) (handled int, err error)

// BatchMiddleware is [Inbox.Middleware] for a loop per partition that holds several unacknowledged messages: up to
// Config.Batch of them share one transaction. Handlers are the same and run in order, each message through next, which
// carries the handler's Watermill middlewares; a handler sees what the ones before it wrote. When an event fails, the
// transaction is rolled back and run in parts, so that the outcome of every event is what it would be one by one.
//
// The contract with the loop: the messages are consecutive ones of one partition, ctx is the partition's and each
// message's own context ends with it, no sooner, since the handlers of a batch end together; one call per partition at
// a time. It acknowledges the first handled messages, which are committed or given up, and hands over the rest again
// unless the partition is gone. err is nil if and only if handled is len(msgs); otherwise the context has ended.
func (in *Inbox) BatchMiddleware(next message.HandlerFunc) BatchFunc {
	return func(ctx context.Context, msgs []*message.Message) (handled int, err error) {
		for handled < len(msgs) {
			if err := ctx.Err(); err != nil {
				return handled, fmt.Errorf("handle events: %w", context.Cause(ctx))
			}
			n, err := in.deliverer.handleNext(ctx, msgs[handled:], next)
			handled += n
			if err != nil {
				return handled, err
			}
		}
		return handled, nil
	}
}
