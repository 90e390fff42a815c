package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/inbox/poison"
)

// handleNext handles at least one of the messages, from the first on, and returns how many.
func (d *deliverer) handleNext(ctx context.Context, msgs []*message.Message, next message.HandlerFunc) (int, error) {
	if len(msgs) == 1 {
		return countOne(d.handleOne(msgs[0], next))
	}
	started := time.Now()
	msgs = msgs[:min(len(msgs), int(d.limit.Load()))]
	items, err := d.newItems(msgs, next)
	if err != nil {
		return 0, err
	}
	if len(items) < 2 {
		n, err := countOne(d.handleOne(msgs[0], next))
		if len(msgs) == 1 && n == 1 && time.Since(started) < d.cfg.HandlerTimeout/2 {
			d.growBatch() // there was time for another one; no batch could show it
		}
		return n, err
	}
	return d.handleBatch(ctx, items, next, started)
}

// newItems are the messages up to the first one that is no event: its dead letter is written when those before it are
// committed.
func (d *deliverer) newItems(msgs []*message.Message, next message.HandlerFunc) ([]*item, error) {
	p, err := d.partitionOf(msgs[0])
	if err != nil {
		return nil, err
	}
	made, items := make([]item, len(msgs)), make([]*item, 0, len(msgs))
	for i, msg := range msgs {
		it := &made[i]
		it.partition = p
		if d.read(it, msg, next); it.invalid != nil {
			break
		}
		items = append(items, it)
	}
	return items, nil
}

func countOne(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// handleBatch handles as many of the items as may share a transaction. If one of them does not let it, it runs that one
// alone, after those before it: what comes after it is the caller's next batch.
func (d *deliverer) handleBatch(
	ctx context.Context, items []*item, next message.HandlerFunc, started time.Time,
) (int, error) {
	tried, err := d.attempt(ctx, items)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("handle events: %w", context.Cause(ctx))
	}
	if _, died := errors.AsType[*poison.DiedError](err); died || len(tried) == 0 {
		return countOne(d.handleOne(items[0].msg, next))
	}
	relevant := d.engine.order.relevant(tried)
	if err != nil {
		d.metrics.splits.Inc()
		d.log.DebugContext(ctx, "batch rolled back", "events", len(relevant), "error", err)
		_ = d.cfg.Host.Pause(ctx, err, 0) // known from now on: the next attempt may take all its time, too
		return d.splitBatch(ctx, tried, relevant, next, err, started)
	}
	d.metrics.batches.Observe(float64(len(relevant)))
	_ = d.cfg.Host.Pause(ctx, nil, 0)
	d.growBatch()
	for i, it := range tried {
		if err := d.fileOutcome(it); err != nil {
			return i, err
		}
		d.report(it, started, nil)
	}
	tried[0].partition.settle(tried...)
	d.resumeBehind(tried...)
	return len(tried), nil
}

// splitBatch runs the events of a batch that was rolled back.
func (d *deliverer) splitBatch(
	ctx context.Context, items, relevant []*item, next message.HandlerFunc, cause error, started time.Time,
) (int, error) {
	var whose *itemError
	known := errors.As(cause, &whose) && whose.item != noItem
	late := errors.Is(cause, context.DeadlineExceeded)
	if late {
		d.limit.Store(max(1, int64(len(relevant))/2)) // too many for the time there is
	}
	if !known || late {
		for i, it := range items {
			if err := d.handleOne(it.msg, next); err != nil {
				return i, err
			}
		}
		return len(items), nil
	}
	culprit := 0
	for items[culprit] != relevant[whose.item] {
		culprit++
	}
	if culprit > 0 {
		for _, it := range items[:culprit] {
			if it.outcome = Applied; it.ignored {
				it.outcome = Ignored
			}
		}
		// One of them that went well before may fail now: then those behind it have not run, and come before the culprit.
		if n, err := d.handleBatch(ctx, items[:culprit], next, started); err != nil || n < culprit {
			return n, err
		}
	}
	if err := d.handleOne(items[culprit].msg, next); err != nil {
		return culprit, err
	}
	return culprit + 1, nil
}

// growBatch lets batches become larger again after a time in which they had to be small.
func (d *deliverer) growBatch() {
	if limit := d.limit.Load(); limit < int64(d.cfg.Batch) {
		d.limit.CompareAndSwap(limit, limit+1)
	}
}
