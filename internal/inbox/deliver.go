package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/poison"
)

// Middleware makes next run once per event, inside the inbox transaction. It returns nil, which acknowledges the
// message, for every final outcome, dead letters included. It returns an error only when the message's context has
// ended: the process is stopping or the partition is gone, nothing was committed, and the event will come again.
//
// It does its own retrying, because an attempt is a transaction: install no Retry or PoisonQueue around it. Middlewares
// between it and the handler run in the transaction, with each attempt. Plain handlers and processors of Watermill's
// cqrs reach it by [TxFromContext]. Under a Router on watermill-kafka, with any marshaler, an event's id is ce_id and
// its key ce_subject; where its record lies the middleware kafka.Origin tells. Messages that next returns for
// publishing are refused: they would leave after the commit and be lost by a crash in between; the outbox is for them.
func (in *Inbox) Middleware(next message.HandlerFunc) message.HandlerFunc {
	handle := in.BatchMiddleware(next)
	return func(msg *message.Message) ([]*message.Message, error) {
		_, err := handle(msg.Context(), []*message.Message{msg})
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
	d := in.deliverer
	return func(ctx context.Context, msgs []*message.Message) (handled int, err error) {
		for handled < len(msgs) {
			if ctx.Err() != nil {
				return handled, fmt.Errorf("handle events: %w", context.Cause(ctx))
			}
			limit := int(d.limit.Load())
			items, err := d.read(msgs[handled:min(len(msgs), handled+limit)], next)
			if err != nil {
				return handled, err
			}
			n, err := d.handle(ctx, items)
			if handled += n; err != nil {
				return handled, err
			}
			if n == limit && limit < d.cfg.Batch && time.Since(items[0].started) < d.cfg.HandlerTimeout/2 {
				d.limit.CompareAndSwap(int64(limit), int64(limit)+1) // there was time for another one
			}
		}
		return handled, nil
	}
}

// deliverer brings deliveries to their final outcome: it retries, isolates, gives up and reports.
type deliverer struct {
	*engine
	metrics *metrics
	guard   *poison.Guard
	limit   atomic.Int64 // of a batch: what time has shown to be possible
	resumer Resumer      // nil: none
}

// read makes items of the messages, up to the first one that is no event: its dead letter is written when those before
// it are committed.
func (d *deliverer) read(msgs []*message.Message, next message.HandlerFunc) (items []*item, err error) {
	made, items := make([]item, len(msgs)), make([]*item, 0, len(msgs))
	started := time.Now()
	for i, msg := range msgs {
		it := &made[i]
		d.crash("received")
		known := d.readItem(it, msg, next)
		it.started = started
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
// The origin is what the subscriber says, or for a Router a middleware such as kafka.Origin; where it names no group
// that is [Config.Group]. Without headers in it a dead letter's are the message's: of a name that came twice the last
// one, in the order of the names.
func (d *deliverer) readItem(it *item, msg *message.Message, next message.HandlerFunc) (known bool) {
	it.ctx, it.msg, it.next, it.outcome = msg.Context(), msg, next, Applied
	it.origin, known = cloudevent.OriginFrom(it.ctx)
	if known {
		it.origin.Group = cmp.Or(it.origin.Group, d.cfg.Group)
	}
	it.origin.LastOffset = max(it.origin.Offset, it.origin.LastOffset)
	it.event, it.invalid = cloudevent.FromMessage(msg)
	switch it.decoded = it.invalid == nil; {
	case it.decoded && !d.cfg.Handlers.Accepts(it.event.Type):
		it.ignored, it.outcome = true, Ignored
		return known
	case !it.decoded:
		it.invalid, it.outcome = failure.AsPermanent(it.invalid), Failed
	}
	if it.decoded || cloudevent.ValidID(it.event.ID) == nil { // the dead letter of what is no event may have an id
		it.entry = newEntry(&it.event)
	}
	return known
}

// check holds the events against their contract, up to the first one that breaks it. It returns those before it and, of
// these, the ones that a transaction is for: those that there are handlers for, and those that count in their key's
// order all the same.
func (d *deliverer) check(items []*item) (valid, relevant []*item) {
	for i, it := range items {
		if it.ignored {
			continue
		}
		if err := d.cfg.Validate(it.event); err != nil {
			it.invalid, it.outcome = failure.AsPermanent(err), Failed
			items = items[:i]
			break
		}
	}
	skip := func(it *item) bool { return it.ignored && (!d.cfg.Versioned || it.event.Version == 0) }
	if !slices.ContainsFunc(items, skip) {
		return items, items
	}
	return items, slices.DeleteFunc(slices.Clone(items), skip)
}

// attempt checks and applies as many of the items as may share a transaction, and returns those, and for which of them
// the transaction was. With an error, nothing of them is committed. An item that is not even to be applied ends them
// and is not one of them; it has the reason.
func (d *deliverer) attempt(ctx context.Context, items []*item) (tried, relevant []*item, err error) {
	if items[0].invalid != nil {
		return nil, nil, nil
	}
	attempt, begun := items[0].partition.TryBegin(len(items))
	if !begun {
		if attempt, err = d.beginSuspected(ctx, items); err != nil {
			return items, nil, err
		}
	}
	applied := false
	defer func() { attempt.End(applied) }()
	tried = items[:attempt.N]
	switch {
	case attempt.Known:
		return tried, tried, nil
	case attempt.Died != nil:
		return tried, nil, attempt.Died
	}
	if tried, relevant = d.check(tried); len(relevant) > 0 {
		err = d.apply(ctx, relevant, tried[len(tried)-1].origin.LastOffset)
		applied = err == nil
	}
	return tried, relevant, err
}

// beginSuspected finds out how many of the items may share an attempt, and waits until it may run.
func (d *deliverer) beginSuspected(ctx context.Context, items []*item) (poison.Attempt, error) {
	records := make([]poison.Record, len(items))
	for i, it := range items {
		records[i] = poison.Record{First: it.origin.Offset, Last: it.origin.LastOffset, Ignored: it.ignored}
	}
	return items[0].partition.Begin(ctx, records, func(ctx context.Context, n int) (bool, error) {
		return d.ids.allProcessed(ctx, d.cfg.Pool, items[:n])
	})
}

// handle handles as many of the items as may share a transaction. If one of them does not let it, it runs that one
// alone, after those before it: what comes after it is the caller's next batch.
func (d *deliverer) handle(ctx context.Context, items []*item) (int, error) {
	if it := items[0]; len(items) == 1 {
		if ctx = it.ctx; it.origin.Headers == nil && !it.ignored {
			it.failures() // they are in the message alone, and its handler may change that
		}
	}
	tried, relevant, err := d.attempt(ctx, items)
	_, died := errors.AsType[*poison.DiedError](err)
	switch {
	case err == nil && len(tried) > 0:
		if len(items) > 1 {
			d.metrics.batches.Observe(float64(len(relevant)))
		}
		_ = d.cfg.Host.Pause(ctx, nil, 0)
		return d.settle(tried, nil)
	case len(items) == 1:
		return d.settle(items, d.retryAlone(items[0], err))
	case err != nil && ctx.Err() != nil:
		return 0, fmt.Errorf("handle events: %w", context.Cause(ctx))
	case died || len(tried) == 0:
		return d.handle(ctx, items[:1])
	}
	d.metrics.splits.Inc()
	d.log.DebugContext(ctx, "batch rolled back", "events", len(relevant), "error", err)
	_ = d.cfg.Host.Pause(ctx, err, 0) // known from now on: the next attempt may take all its time, too
	return d.splitBatch(ctx, tried, relevant, err)
}

// splitBatch runs the events of a batch that was rolled back.
func (d *deliverer) splitBatch(ctx context.Context, items, relevant []*item, cause error) (int, error) {
	whose, known := errors.AsType[*itemError](cause)
	late := errors.Is(cause, context.DeadlineExceeded) || codeOf(cause) == CodeHandlerTimeout
	if late {
		d.limit.Store(max(1, int64(len(relevant))/2)) // too many for the time there is
	}
	if !known || whose.item == noItem || late {
		for i := range items {
			if _, err := d.handle(ctx, items[i:i+1]); err != nil {
				return i, err
			}
		}
		return len(items), nil
	}
	culprit := slices.Index(items, relevant[whose.item])
	if culprit > 0 {
		// One of them that went well before may fail now: then those behind it have not run, and come before the culprit.
		if n, err := d.handle(ctx, items[:culprit]); err != nil || n < culprit {
			return n, err
		}
	}
	n, err := d.handle(ctx, items[culprit:culprit+1])
	return culprit + n, err
}

// retryAlone brings an item whose first attempt has failed, or that is not even to be applied, to its final outcome: it
// tries until there is one.
func (d *deliverer) retryAlone(it *item, err error) error {
	retry := d.cfg.retryOf(it.event.Type)
	var gap time.Time // when it was first seen
	for err != nil || it.invalid != nil {
		var pause time.Duration
		cause := err
		died, isDead := errors.AsType[*poison.DiedError](err)
		switch {
		case it.invalid != nil:
			return d.giveUp(it, it.failures(), it.invalid)
		case it.ctx.Err() != nil:
			return fmt.Errorf("handle event: %w", context.Cause(it.ctx))
		case isDead:
			dead := it.failures()
			dead.Attempts, dead.FirstFailedAt = died.Deaths-1, died.Since
			return d.giveUp(it, dead, &codedError{CodeProcessDied, failure.AsPermanent(died)})
		case errors.Is(err, errGap):
			if gap.IsZero() {
				gap = time.Now()
			}
			if it.waited = time.Since(gap) >= d.cfg.GapWait; it.waited {
				it.partition.WaitedAt = time.Now()
			}
			cause, pause = nil, min(d.cfg.RetryMin, d.cfg.GapWait)
		default:
			if whose, is := errors.AsType[*itemError](err); is && whose.unguarded && !it.lockFirst {
				// Perhaps another transaction had the key's watermark for all that time. The next attempt takes it first, so
				// that what is late then is the handler.
				it.lockFirst, cause = true, failure.AsTransient(err)
			}
			class, again := retry.after(cause)
			d.metrics.retries.WithLabelValues(string(class)).Inc()
			if !again && !it.ignored { // what is only counted in its key's order cannot fail for a reason of its own
				return d.giveUp(it, it.failures(), cause)
			}
			addFailure(it.failures(), cause)
			pause = retry.pauses.Next()
			d.log.WarnContext(it.ctx, "attempt failed", "event_id", it.event.ID, "event_type", it.event.Type,
				"correlation_id", it.event.CorrelationID(), "attempt", it.letter.Attempts, "class", class,
				"retry_in", pause, "error", cause)
		}
		if err := d.cfg.Host.Pause(it.ctx, cause, pause); err != nil {
			return err
		}
		_, _, err = d.attempt(it.ctx, []*item{it})
	}
	_ = d.cfg.Host.Pause(it.ctx, nil, 0)
	return nil
}

// giveUp writes the dead letter for as long as it takes: until it is committed the record is not acknowledged, so it
// cannot be lost between the log and the table.
func (d *deliverer) giveUp(it *item, l *deadletter.Letter, reason error) error {
	addFailure(l, reason)
	if it.outcome != Conflict && it.outcome != Expired {
		it.outcome = Dead
	}
	twin := false
	err := d.insist(it.ctx, "write dead letter", func(ctx context.Context) (err error) {
		twin, err = d.file(ctx, it, l)
		return err
	})
	switch {
	case err != nil:
		return err
	case twin:
		it.outcome = Duplicate
		return nil
	}
	it.unblocks = d.cfg.Versioned && d.cfg.OnDead == DeadPass
	d.metrics.letters.WithLabelValues(l.Code).Inc()
	d.log.ErrorContext(it.ctx, "event given up", "outcome", it.outcome, "event_id", l.EventID, "event_type", l.EventType,
		"correlation_id", it.event.CorrelationID(), "code", l.Code, "class", l.Class, "attempts", l.Attempts,
		"topic", l.Topic, "partition", l.Partition, "offset", l.Offset, "error", reason, "table", "public.dead_letter")
	return nil
}

// settle brings items of which it is decided what they come to, or which err keeps from that, to their end. It writes
// the dead letters and marks that their outcomes want, and reports them. Then it tells the partition, and takes up what
// waited for them, now that they are committed.
func (d *deliverer) settle(items []*item, err error) (settled int, _ error) {
	fresh := 0 // that had not come to their end before: what had is processed, or has its dead letter
	for i, it := range items {
		switch {
		case err != nil:
		case it.outcome == Conflict && d.cfg.OnConflict == ConflictError:
			err = d.giveUp(it, it.newLetter(), &codedError{CodeConflict, failure.AsPermanent(errConflict)})
		case it.outcome == Conflict:
			err = d.insist(it.ctx, "note conflict", func(ctx context.Context) error { return d.ids.markConflict(ctx, it) })
		case it.outcome == Expired:
			err = d.giveUp(it, it.newLetter(), &codedError{CodeTooOld, failure.AsPermanent(ErrExpired)})
		}
		if err != nil {
			it.outcome = Failed
		}
		d.report(it, err)
		if err != nil {
			return i, err
		}
		if it.outcome != Duplicate && !it.ignored && !it.filedBefore {
			fresh++
		}
	}
	if p := items[0].partition; p.Suspicious() {
		p.Settle(items[len(items)-1].origin.LastOffset, fresh)
	}
	var resumed []string
	for _, it := range items {
		if key := it.event.Key; it.unblocks && d.resumer != nil && !slices.Contains(resumed, key) {
			resumed = append(resumed, key)
			d.resumer.Resume(it.ctx, key)
		}
	}
	return len(items), nil
}

// report tells metrics, log and host. An applied event is no news, and of what is given up the reason has been told.
func (d *deliverer) report(it *item, err error) {
	d.metrics.messages.WithLabelValues(string(it.outcome)).Inc()
	d.metrics.seconds.Observe(time.Since(it.started).Seconds())
	level, told := slog.LevelInfo, false
	switch it.outcome {
	case Applied, Ignored:
		level = slog.LevelDebug
	case Gap, Parked, Failed:
		level = slog.LevelWarn
	case Conflict:
		level, told = slog.LevelWarn, d.cfg.OnConflict == ConflictError
	case Dead, Expired:
		told = true
	case Duplicate, Stale:
	}
	if !told && d.log.Enabled(it.ctx, level) {
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
	d.cfg.Host.Handled(it.event, it.outcome)
	d.crash("acknowledging")
}
