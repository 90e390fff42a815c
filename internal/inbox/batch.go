package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/inbox/poison"
)

// BatchFunc handles messages of one partition, in order, and reports how many of them, from the first on, have come to
// a final outcome and may be acknowledged.
type BatchFunc func(ctx context.Context, msgs []*message.Message) (handled int, err error)

// BatchMiddleware is [Inbox.Middleware] for a loop per partition that holds several unacknowledged messages: up to
// Config.Batch of them share one transaction. Handlers are the same and run in order, each message through next, which
// carries whatever Watermill middlewares a handler has; a handler sees what the ones before it wrote. When an event
// fails, the transaction is rolled back and run in parts, so that the outcome of every event is what it would be one
// by one.
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
			n, err := in.some(ctx, msgs[handled:], next)
			handled += n
			if err != nil {
				return handled, err
			}
		}
		return handled, nil
	}
}

// some handles at least one of the messages.
func (in *Inbox) some(ctx context.Context, msgs []*message.Message, next message.HandlerFunc) (int, error) {
	if len(msgs) == 1 {
		return one(in.single(msgs[0], next))
	}
	partition, err := in.partitionOf(msgs[0])
	if err != nil {
		return 0, err
	}
	started := time.Now()
	msgs = msgs[:min(len(msgs), int(in.limit.Load()))]
	made, items := make([]item, len(msgs)), make([]*item, 0, len(msgs))
	for i, msg := range msgs {
		it := &made[i]
		it.partition = partition
		if in.recognize(it, msg, next); it.wrong != nil {
			break // its dead letter is written when those before it are committed
		}
		items = append(items, it)
	}
	if len(items) < 2 {
		n, err := one(in.single(msgs[0], next))
		if len(msgs) == 1 && n == 1 && time.Since(started) < in.cfg.HandlerTimeout/2 {
			in.grow() // there was time for another one; no batch could show it
		}
		return n, err
	}
	return in.together(ctx, items, next, started)
}

func one(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// together handles as many of the items as may share a transaction. If one of them does not let it, it runs that one
// alone, after those before it: what comes after it is the caller's next batch.
func (in *Inbox) together(
	ctx context.Context, items []*item, next message.HandlerFunc, started time.Time,
) (int, error) {
	tried, err := in.attempt(ctx, items)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("handle events: %w", context.Cause(ctx))
	}
	if _, died := errors.AsType[*poison.DiedError](err); died || len(tried) == 0 {
		return one(in.single(items[0].msg, next))
	}
	heard := in.heard(tried)
	if err != nil {
		in.metrics.splits.Inc()
		in.log.DebugContext(ctx, "batch rolled back", "events", len(heard), "error", err)
		_ = in.cfg.Host.Pause(ctx, err, 0) // known from now on: the next attempt may take all its time, too
		return in.apart(ctx, tried, heard, next, err, started)
	}
	in.metrics.batches.Observe(float64(len(heard)))
	_ = in.cfg.Host.Pause(ctx, nil, 0)
	in.grow()
	for i, it := range tried {
		if err := in.settle(it); err != nil {
			return i, err
		}
		in.done(it, started, nil)
	}
	tried[0].partition.settle(tried...)
	in.resumeBehind(tried...)
	return len(tried), nil
}

// apart runs the events of a batch that was rolled back.
func (in *Inbox) apart(
	ctx context.Context, items, heard []*item, next message.HandlerFunc, cause error, started time.Time,
) (int, error) {
	var whose *itemError
	known := errors.As(cause, &whose) && whose.item != noItem
	late := errors.Is(cause, context.DeadlineExceeded)
	if late {
		in.limit.Store(max(1, int64(len(heard))/2)) // too many for the time there is
	}
	if !known || late {
		for i, it := range items {
			if err := in.single(it.msg, next); err != nil {
				return i, err
			}
		}
		return len(items), nil
	}
	culprit := 0
	for items[culprit] != heard[whose.item] {
		culprit++
	}
	if culprit > 0 {
		for _, it := range items[:culprit] {
			if it.outcome = Applied; it.ignored {
				it.outcome = Ignored
			}
		}
		// One of them that went well before may fail now: then those behind it have not run, and come before the culprit.
		if n, err := in.together(ctx, items[:culprit], next, started); err != nil || n < culprit {
			return n, err
		}
	}
	if err := in.single(items[culprit].msg, next); err != nil {
		return culprit, err
	}
	return culprit + 1, nil
}

// grow lets batches become larger again after a time in which they had to be small.
func (in *Inbox) grow() {
	if limit := in.limit.Load(); limit < int64(in.cfg.Batch) {
		in.limit.CompareAndSwap(limit, limit+1)
	}
}
