package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox/poison"
)

// deliverer brings deliveries to their final outcome: it retries, isolates, gives up and reports.
type deliverer struct {
	cfg        Config
	log        *slog.Logger
	metrics    *metrics
	engine     *engine
	reader     reader
	partitions *partitions
	limit      atomic.Int64 // of a batch: what time has shown to be possible
	resumer    Resumer      // nil: none
}

// handleOne brings one message to its final outcome, or to Failed when its context ends first.
func (d *deliverer) handleOne(msg *message.Message, next message.HandlerFunc) error {
	started := time.Now()
	partition, err := d.partitionOf(msg)
	if err != nil {
		return err
	}
	it := &item{partition: partition}
	d.read(it, msg, next)
	switch {
	case !it.ignored:
		err = d.retryAlone(it)
	case d.engine.order.counts(it):
		err = d.countIgnored(it)
	}
	if err == nil {
		it.partition.settle(it)
	}
	d.report(it, started, err)
	d.resumeBehind(it)
	return err
}

// partitionOf is the partition that the message comes from; nil when no broker delivered it.
func (d *deliverer) partitionOf(msg *message.Message) (*partition, error) {
	if origin, delivered := d.reader.originOf(msg); delivered {
		return d.partitions.of(msg.Context(), origin)
	}
	return nil, nil
}

func (d *deliverer) read(it *item, msg *message.Message, next message.HandlerFunc) {
	d.engine.crash("received")
	d.reader.read(it, msg, next)
}

// countIgnored counts an event that has no handler in its key's order. It runs nothing, so it is no suspect and cannot
// fail for a reason of its own.
func (d *deliverer) countIgnored(it *item) error {
	if it.partition != nil {
		it.partition.upTo = it.last()
	}
	return d.engine.insist(it.ctx, "pass over event", func(context.Context) error {
		return d.engine.apply(it.ctx, []*item{it})
	})
}

// retryAlone brings an item to its final outcome: it tries until there is one.
func (d *deliverer) retryAlone(it *item) error {
	retry := newRetry(d.cfg.rulesFor(it.event.Type))
	if it.origin.Headers == nil {
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
				it.partition.noteWait()
			}
			if err := d.cfg.Host.Pause(it.ctx, nil, min(d.cfg.RetryMin, d.cfg.GapWait)); err != nil {
				return err
			}
			continue
		case isDead:
			dead := it.failures()
			dead.attempts, dead.first = died.Deaths-1, died.Since
			return d.giveUp(it, dead.after(&codedError{CodeProcessDied, failure.AsPermanent(died)}))
		}
		if _, unclear := errors.AsType[*guardError](err); unclear && !it.lockFirst {
			// Perhaps another transaction had the key's watermark for all that time. The next attempt takes it first, so
			// that what is late then is the handler.
			it.lockFirst, err = true, failure.AsTransient(err)
		}
		it.failures().after(err)
		again := retry.after(err)
		d.metrics.retries.WithLabelValues(string(again.class)).Inc()
		if !again.worthwhile {
			return d.giveUp(it, it.failures())
		}
		d.log.WarnContext(it.ctx, "attempt failed", "event_id", it.event.ID, "event_type", it.event.Type,
			"correlation_id", it.event.CorrelationID(), "attempt", it.failures().attempts, "class", again.class,
			"retry_in", again.pause, "error", err)
		if err := d.cfg.Host.Pause(it.ctx, err, again.pause); err != nil {
			return err
		}
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
			return d.engine.ids.markConflict(ctx, d.cfg.Pool, it)
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
	d.metrics.letters.WithLabelValues(record.code()).Inc()
	d.log.ErrorContext(it.ctx, "event given up", "outcome", outcome, "event_id", record.id,
		"event_type", it.event.Type, "correlation_id", it.event.CorrelationID(),
		"code", record.code(), "class", record.class(), "attempts", record.attempts, "topic", record.origin.Topic,
		"partition", record.origin.Partition, "offset", record.origin.Offset, "error", record.err,
		"list", "twinbox dlq list")
	return nil
}

// resumeBehind takes up what waited for the items, now that they are committed.
func (d *deliverer) resumeBehind(items ...*item) {
	if d.resumer == nil {
		return
	}
	var seen map[string]bool
	for _, it := range items {
		if key := it.event.Key; it.unblocks && !seen[key] {
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[key] = true
			d.resumer.Resume(it.ctx, key)
		}
	}
}

// report tells metrics, log and host.
func (d *deliverer) report(it *item, started time.Time, err error) {
	d.metrics.messages.WithLabelValues(string(it.outcome)).Inc()
	d.metrics.seconds.Observe(time.Since(started).Seconds())
	d.logOutcome(it, err)
	d.cfg.Host.Handled(it.event, it.outcome)
	d.engine.crash("acknowledging")
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
	case Duplicate, Stale, waits:
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
