package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
)

// Middleware runs next once per event, inside the inbox's transaction. It returns nil for every final outcome, dead
// letters included, and an error only when the message's context has ended: nothing is committed.
//
// Install no Retry or PoisonQueue around it. Plain handlers get the transaction from [TxFromContext]. Messages that
// next returns are refused: write them to the outbox.
func (in *Inbox) Middleware(next message.HandlerFunc) message.HandlerFunc {
	handle := in.BatchMiddleware(next)
	return func(msg *message.Message) ([]*message.Message, error) {
		_, err := handle(msg.Context(), []*message.Message{msg})
		return nil, err
	}
}

// BatchFunc handles messages of one partition, in order. It returns how many have a final outcome. Their contexts end
// with ctx.
type BatchFunc func(ctx context.Context, msgs []*message.Message) (handled int, err error)

// BatchMiddleware is [Inbox.Middleware] for many messages: up to Config.Batch events share one transaction. Each event
// has the outcome that it would have alone. The messages are consecutive ones of one partition, with one call at a
// time. If not all are handled, a context has ended, or err is [ErrWentBack].
func (in *Inbox) BatchMiddleware(next message.HandlerFunc) BatchFunc {
	return func(ctx context.Context, msgs []*message.Message) (handled int, err error) {
		items := make([]*item, len(msgs))
		for i, msg := range msgs {
			items[i] = in.newItem(msg, next)
		}
		if len(items) == 0 {
			return 0, nil
		}
		p, err := in.partitionOf(ctx, items[0].origin)
		if err != nil {
			return 0, err
		}
		return in.handleItems(ctx, p, items)
	}
}

// handleItems tries many items in one transaction. Of items that failed together it tries half, down to one item, which
// it tries until it has an outcome.
func (in *Inbox) handleItems(ctx context.Context, p *partition, items []*item) (handled int, err error) {
	toSplit := 0 // so many of the next items failed together, so half of them are tried
	for handled < len(items) {
		tried := in.nextBatch(p, items[handled:], toSplit)
		n := len(tried)
		switch err := in.attempt(ctx, p, tried); {
		case err == nil:
			handled, toSplit = handled+n, max(0, toSplit-n)
			in.report(tried...)
			in.metrics.batches.Observe(float64(n))
			in.limit.Store(min(in.limit.Load()+1, int64(in.cfg.Batch)))
		case errors.Is(err, ErrWentBack):
			return handled, err
		case n == 1:
			if err := in.giveUpOrWait(ctx, tried[0], err); err != nil {
				in.report(tried...)
				return handled, err
			}
		case ctx.Err() != nil:
			return handled, endOfDelivery(ctx)
		default:
			toSplit = n
			if errors.Is(err, context.DeadlineExceeded) {
				in.limit.Store(int64(n / 2))
			}
			in.metrics.splits.Inc()
			in.log.DebugContext(ctx, "batch rolled back", "events", n, "error", err)
		}
	}
	return handled, nil
}

// nextBatch returns the first items for one transaction, which has each id once.
func (in *Inbox) nextBatch(p *partition, items []*item, toSplit int) []*item {
	n := min(len(items), int(in.limit.Load()))
	switch {
	case p.runsOneByOne(items[0]):
		n = 1
	case toSplit > 0:
		n = max(1, toSplit/2)
	}
	seen := make(map[string]bool, n)
	for i, it := range items[:n] {
		if it.hasHandler() {
			if seen[it.event.ID] {
				return items[:i]
			}
			seen[it.event.ID] = true
		}
	}
	return items[:n]
}

// attempt is one transaction. While a record may end the process, it is counted: see crash.go.
func (in *Inbox) attempt(ctx context.Context, p *partition, items []*item) (err error) {
	if err := in.cfg.Host.AwaitResume(ctx); err != nil {
		return err
	}
	defer func() { in.cfg.Host.Attempted(ctx, err) }()
	defer p.lockProcess(items[0])()
	if err := p.countAttempt(ctx, items); err != nil {
		return err
	}
	if err := in.apply(ctx, items); err != nil {
		return err
	}
	p.clearAttempts(ctx, items)
	return nil
}

// giveUpOrWait is for an item that failed alone. If it is given up, the next attempt stores its dead letter.
func (in *Inbox) giveUpOrWait(ctx context.Context, it *item, err error) error {
	if ctx.Err() != nil {
		return endOfDelivery(ctx)
	}
	class := classify(err)
	in.metrics.retries.WithLabelValues(string(class)).Inc()
	if it.givenUpFor == nil {
		it.noteFailure()
		if class == failure.Unknown {
			it.unknown++
		}
		if class == failure.Permanent || it.unknown >= in.cfg.MaxAttempts {
			it.givenUpFor = err
			return nil
		}
	}
	pause := it.backoff.Next()
	in.log.WarnContext(it.ctx, "attempt failed", "event_id", it.event.ID, "event_type", it.event.Type,
		"correlation_id", it.event.CorrelationID(), "attempt", it.attempts, "class", class, "retry_in", pause,
		"error", err)
	return in.cfg.Host.Wait(ctx, err, pause)
}

func endOfDelivery(ctx context.Context) error {
	return fmt.Errorf("handle events: %w", context.Cause(ctx))
}

func (in *Inbox) report(items ...*item) {
	for _, it := range items {
		in.metrics.messages.WithLabelValues(string(it.outcome)).Inc()
		in.metrics.seconds.Observe(time.Since(it.started).Seconds())
		if it.isDeadLetter() {
			in.metrics.letters.WithLabelValues(it.stored.Code).Inc()
		}
		in.logOutcome(it)
		in.cfg.Host.Handled(it.event, it.outcome)
	}
}

func (in *Inbox) logOutcome(it *item) {
	level := slog.LevelWarn
	switch {
	case it.outcome == Applied, it.outcome == Ignored:
		level = slog.LevelDebug
	case it.outcome == Duplicate, it.outcome == Stale && in.cfg.Order != Strict:
		level = slog.LevelInfo
	}
	if !in.log.Enabled(it.ctx, level) {
		return
	}
	attrs := []any{
		"outcome", it.outcome, "event_id", it.event.ID, "event_type", it.event.Type,
		"correlation_id", it.event.CorrelationID(),
	}
	if it.origin.Topic != "" {
		attrs = append(attrs, "topic", it.origin.Topic, "partition", it.origin.Partition, "offset", it.origin.Offset)
	}
	if l := it.stored; l != nil {
		attrs = append(attrs, "code", l.Code, "class", l.Class, "attempts", l.Attempts, "error", l.Error,
			"table", "public.dead_letter")
	}
	if it.isDeadLetter() {
		in.log.ErrorContext(it.ctx, "event given up", attrs...)
		return
	}
	in.log.Log(it.ctx, level, "event settled", attrs...)
}
