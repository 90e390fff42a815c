package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox/poison"
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
		_, err := in.deliverer.handleNext(msg.Context(), []*message.Message{msg}, next)
		return nil, err
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

// deliverer brings deliveries to their final outcome: it retries, isolates, gives up and reports.
type deliverer struct {
	cfg     *Config
	log     *slog.Logger
	metrics *metrics
	engine  *engine
	guard   *poison.Guard
	limit   atomic.Int64 // of a batch: what time has shown to be possible
	resumer Resumer      // nil: none
}

// handleNext handles at least one of the messages, from the first on, and returns how many.
func (d *deliverer) handleNext(ctx context.Context, msgs []*message.Message, next message.HandlerFunc) (int, error) {
	started, limit := time.Now(), int(d.limit.Load())
	items, err := d.read(msgs[:min(len(msgs), limit)], next)
	if err != nil {
		return 0, err
	}
	if len(items) > 1 {
		return d.handleBatch(ctx, items, started)
	}
	n, err := d.handleOne(items[0], started)
	if limit == 1 && n == 1 && time.Since(started) < d.cfg.HandlerTimeout/2 {
		d.growBatch() // there was time for another one; no batch could show it
	}
	return n, err
}

// read makes items of the messages, up to the first one that is no event: its dead letter is written when those before
// it are committed.
func (d *deliverer) read(msgs []*message.Message, next message.HandlerFunc) (items []*item, err error) {
	made, items := make([]item, len(msgs)), make([]*item, 0, len(msgs))
	for i, msg := range msgs {
		it := &made[i]
		d.engine.crash("received")
		known := d.readItem(it, msg, next)
		switch {
		case i > 0:
			it.partition = made[0].partition
		case known:
			it.partition, err = d.guard.Of(it.ctx, it.origin.Topic, it.origin.Partition)
		default:
			it.partition = new(poison.Assignment)
		}
		if err != nil {
			return nil, err
		}
		// A partition that has waited lately parks its next gap at once: if thousands of keys have one, the partition loses
		// a tenth of its time and not a wait for each of them.
		it.waited = !it.partition.WaitedAt.IsZero() && time.Since(it.partition.WaitedAt) < 9*d.cfg.GapWait
		if it.invalid == nil || i == 0 {
			items = append(items, it)
		}
		if it.invalid != nil {
			break
		}
	}
	return items, nil
}

// readItem finds out what event it is, whether there is a handler for it, and where the record lies that the message
// was made of; known is false for a message that no broker delivered. It does not look into the payload.
//
// Of a subscriber that knows nothing of [cloudevent.WithOrigin] the origin is what its own package and Watermill's
// Router say: the group is [Config.Group] then, and a dead letter's headers are the message's: of a name that came
// twice the last one, in the order of the names. The record's key is put into the message, whose unmarshaler may have
// left it out.
func (d *deliverer) readItem(it *item, msg *message.Message, next message.HandlerFunc) (known bool) {
	it.ctx, it.msg, it.next, it.outcome = msg.Context(), msg, next, Applied
	if it.origin, known = cloudevent.OriginFrom(it.ctx); !known {
		if it.origin, known = cloudevent.ForeignOrigin(it.ctx); known {
			it.origin.Group = d.cfg.Group
			delete(msg.Metadata, cloudevent.KeyMetadata)
			if len(it.origin.Key) > 0 {
				msg.Metadata[cloudevent.KeyMetadata] = string(it.origin.Key)
			}
		}
	}
	it.event, it.invalid = cloudevent.FromMessage(msg)
	switch it.decoded = it.invalid == nil; {
	case !it.decoded:
		it.invalid, it.outcome = failure.AsPermanent(it.invalid), Failed
	case !d.cfg.Handlers.Accepts(it.event.Type):
		it.ignored, it.outcome = true, Ignored
	default:
		it.entry = newEntry(it.event, it.origin)
	}
	return known
}

// check holds the events against their contract, up to the first one that breaks it. It returns those before it.
func (d *deliverer) check(items []*item) []*item {
	for i, it := range items {
		if it.ignored {
			continue
		}
		if err := d.cfg.Validate(it.event); err != nil {
			it.invalid, it.outcome = failure.AsPermanent(err), Failed
			return items[:i]
		}
	}
	return items
}

// attempt checks and applies as many of the items as may share a transaction, and returns those. With an error, nothing
// of them is committed. An item that is not even to be applied ends them and is not one of them; it has the reason.
func (d *deliverer) attempt(ctx context.Context, items []*item) (tried []*item, err error) {
	attempt, begun := items[0].partition.TryBegin(len(items))
	if !begun {
		if attempt, err = d.beginSuspected(ctx, items); err != nil {
			return items, err
		}
	}
	applied := false
	defer func() { attempt.End(applied) }()
	items = items[:attempt.N]
	switch {
	case attempt.Known:
		return items, nil
	case attempt.Died != nil:
		return items, attempt.Died
	}
	tried = d.check(items)
	relevant := d.engine.order.relevant(tried)
	if len(relevant) == 0 {
		return tried, nil
	}
	err = d.engine.apply(ctx, relevant, tried[len(tried)-1].last())
	applied = err == nil
	return tried, err
}

// beginSuspected finds out how many of the items may share an attempt, and waits until it may run.
func (d *deliverer) beginSuspected(ctx context.Context, items []*item) (poison.Attempt, error) {
	records := make([]poison.Record, len(items))
	for i, it := range items {
		records[i] = poison.Record{First: it.origin.Offset, Last: it.last(), Ignored: it.ignored}
	}
	return items[0].partition.Begin(ctx, records, func(ctx context.Context, n int) (bool, error) {
		return d.engine.ids.allProcessed(ctx, d.cfg.Pool, items[:n])
	})
}

// handleOne brings an item to its final outcome, or to Failed when its context ends first.
func (d *deliverer) handleOne(it *item, started time.Time) (int, error) {
	err := d.retryAlone(it)
	d.report(it, started, err)
	if err != nil {
		return 0, err
	}
	d.finish(it)
	return 1, nil
}

// handleAgain is handleOne for an item of a batch that was rolled back: it begins anew with the message.
func (d *deliverer) handleAgain(it *item) (int, error) {
	items, err := d.read([]*message.Message{it.msg}, it.next)
	if err != nil {
		return 0, err
	}
	return d.handleOne(items[0], time.Now())
}

// retryAlone brings an item to its final outcome: it tries until there is one.
func (d *deliverer) retryAlone(it *item) error {
	retry := d.cfg.retryOf(it.event.Type)
	if it.origin.Headers == nil && !it.ignored {
		it.failures() // they are in the message alone, and its handler may change that
	}
	var gap time.Time // when it was first seen
	for {
		var err error
		if it.invalid == nil {
			_, err = d.attempt(it.ctx, []*item{it})
		}
		died, isDead := errors.AsType[*poison.DiedError](err)
		switch {
		case it.invalid != nil:
			return d.giveUp(it, it.failures().after(it.invalid))
		case err == nil:
			_ = d.cfg.Host.Pause(it.ctx, nil, 0)
			return d.fileOutcome(it)
		case it.ctx.Err() != nil:
			return fmt.Errorf("handle event: %w", context.Cause(it.ctx))
		case errors.Is(err, errGap):
			if gap.IsZero() {
				gap = time.Now()
			}
			if it.waited = time.Since(gap) >= d.cfg.GapWait; it.waited {
				it.partition.WaitedAt = time.Now()
			}
			if err := d.cfg.Host.Pause(it.ctx, nil, min(d.cfg.RetryMin, d.cfg.GapWait)); err != nil {
				return err
			}
			continue
		case isDead:
			dead := it.failures()
			dead.letter.Attempts, dead.letter.FirstFailedAt = died.Deaths-1, died.Since
			return d.giveUp(it, dead.after(&codedError{CodeProcessDied, failure.AsPermanent(died)}))
		}
		if whose, is := errors.AsType[*itemError](err); is && whose.unguarded && !it.lockFirst {
			// Perhaps another transaction had the key's watermark for all that time. The next attempt takes it first, so
			// that what is late then is the handler.
			it.lockFirst, err = true, failure.AsTransient(err)
		}
		it.failures().after(err)
		class, again := retry.after(err)
		d.metrics.retries.WithLabelValues(string(class)).Inc()
		if !again && !it.ignored { // what is only counted in its key's order cannot fail for a reason of its own
			return d.giveUp(it, it.failures())
		}
		pause := retry.pauses.Next()
		d.log.WarnContext(it.ctx, "attempt failed", "event_id", it.event.ID, "event_type", it.event.Type,
			"correlation_id", it.event.CorrelationID(), "attempt", it.failures().letter.Attempts, "class", class,
			"retry_in", pause, "error", err)
		if err := d.cfg.Host.Pause(it.ctx, err, pause); err != nil {
			return err
		}
	}
}

// handleBatch handles as many of the items as may share a transaction. If one of them does not let it, it runs that one
// alone, after those before it: what comes after it is the caller's next batch.
func (d *deliverer) handleBatch(ctx context.Context, items []*item, started time.Time) (int, error) {
	tried, err := d.attempt(ctx, items)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("handle events: %w", context.Cause(ctx))
	}
	if _, died := errors.AsType[*poison.DiedError](err); died || len(tried) == 0 {
		return d.handleAgain(items[0])
	}
	relevant := d.engine.order.relevant(tried)
	if err != nil {
		d.metrics.splits.Inc()
		d.log.DebugContext(ctx, "batch rolled back", "events", len(relevant), "error", err)
		_ = d.cfg.Host.Pause(ctx, err, 0) // known from now on: the next attempt may take all its time, too
		return d.splitBatch(ctx, tried, relevant, err, started)
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
	d.finish(tried...)
	return len(tried), nil
}

// splitBatch runs the events of a batch that was rolled back.
func (d *deliverer) splitBatch(
	ctx context.Context, items, relevant []*item, cause error, started time.Time,
) (int, error) {
	var whose *itemError
	known := errors.As(cause, &whose) && whose.item != noItem
	late := errors.Is(cause, context.DeadlineExceeded) || codeOf(cause) == CodeHandlerTimeout
	if late {
		d.limit.Store(max(1, int64(len(relevant))/2)) // too many for the time there is
	}
	if !known || late {
		for i, it := range items {
			if _, err := d.handleAgain(it); err != nil {
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
		// One of them that went well before may fail now: then those behind it have not run, and come before the culprit.
		if n, err := d.handleBatch(ctx, items[:culprit], started); err != nil || n < culprit {
			return n, err
		}
	}
	n, err := d.handleAgain(items[culprit])
	return culprit + n, err
}

// growBatch lets batches become larger again after a time in which they had to be small.
func (d *deliverer) growBatch() {
	if limit := d.limit.Load(); limit < int64(d.cfg.Batch) {
		d.limit.CompareAndSwap(limit, limit+1)
	}
}

// fileOutcome writes the dead letter, or the mark, of an outcome that wants one.
func (d *deliverer) fileOutcome(it *item) error {
	switch {
	case it.outcome == Conflict && d.cfg.OnConflict == ConflictError:
		return d.giveUp(it, it.newFailed().after(&codedError{CodeConflict, failure.AsPermanent(errConflict)}))
	case it.outcome == Expired:
		return d.giveUp(it, it.newFailed().after(&codedError{CodeTooOld, failure.AsPermanent(ErrExpired)}))
	case it.outcome == Conflict:
		return d.engine.insist(it.ctx, "note conflict", func(ctx context.Context) error {
			return d.engine.ids.markConflict(ctx, it)
		})
	}
	return nil
}

// giveUp writes the dead letter for as long as it takes: until it is committed the record is not acknowledged, so it
// cannot be lost between the log and the table.
func (d *deliverer) giveUp(it *item, record *failed) error {
	outcome := Dead
	if it.outcome == Conflict || it.outcome == Expired {
		outcome = it.outcome
	}
	it.outcome = Failed
	twin := false
	err := d.engine.insist(it.ctx, "write dead letter", func(ctx context.Context) (err error) {
		twin, err = d.engine.file(ctx, it, record, outcome)
		return err
	})
	switch {
	case err != nil:
		return err
	case twin:
		it.outcome = Duplicate
		return nil
	}
	it.outcome = outcome
	it.unblocks = d.cfg.Versioned && d.cfg.OnDead == DeadPass
	l := &record.letter
	d.metrics.letters.WithLabelValues(l.Code).Inc()
	d.log.ErrorContext(it.ctx, "event given up", "outcome", outcome, "event_id", l.EventID, "event_type", l.EventType,
		"correlation_id", it.event.CorrelationID(), "code", l.Code, "class", l.Class, "attempts", l.Attempts,
		"topic", l.Topic, "partition", l.Partition, "offset", l.Offset, "error", record.err, "list", "twinbox dlq list")
	return nil
}

// report tells metrics, log and host.
func (d *deliverer) report(it *item, started time.Time, err error) {
	d.metrics.messages.WithLabelValues(string(it.outcome)).Inc()
	d.metrics.seconds.Observe(time.Since(started).Seconds())
	d.logOutcome(it, err)
	d.cfg.Host.Handled(it.event, it.outcome)
	d.engine.crash("acknowledging")
}

// finish tells the partition that the items have come to their end, and takes up what waited for them, now that they
// are committed.
func (d *deliverer) finish(items ...*item) {
	if p := items[0].partition; p.Suspicious() {
		fresh := 0 // that had not come to their end before: what had is processed, or has its dead letter
		for _, it := range items {
			if it.outcome != Duplicate && it.outcome != Failed && !it.ignored && !it.filedBefore {
				fresh++
			}
		}
		p.Settle(items[len(items)-1].last(), fresh)
	}
	var resumed []string
	for _, it := range items {
		if key := it.event.Key; it.unblocks && d.resumer != nil && !slices.Contains(resumed, key) {
			resumed = append(resumed, key)
			d.resumer.Resume(it.ctx, key)
		}
	}
}

// logOutcome logs what is of interest; an applied event is not news.
func (d *deliverer) logOutcome(it *item, err error) {
	level := slog.LevelInfo
	switch it.outcome {
	case Applied, Ignored:
		level = slog.LevelDebug
	case Conflict:
		if level = slog.LevelWarn; d.cfg.OnConflict == ConflictError {
			return // giveUp has said why
		}
	case Gap, Parked, Failed:
		level = slog.LevelWarn
	case Dead, Expired:
		return // giveUp has said why
	case Duplicate, Stale:
	}
	if !d.log.Enabled(it.ctx, level) {
		return
	}
	attrs := []any{
		"outcome", it.outcome, "event_id", it.event.ID, "event_type", it.event.Type,
		"correlation_id", it.event.CorrelationID(),
	}
	if it.origin.Topic != "" {
		attrs = append(attrs, "topic", it.origin.Topic, "partition", it.origin.Partition, "offset", it.origin.Offset)
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	d.log.Log(it.ctx, level, "event settled", attrs...)
}
