package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/poison"
)

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// Middleware makes next run once per event, inside the inbox transaction. It returns nil, which acknowledges the
// message, for every final outcome, dead letters included. It returns an error only when the message's context has
// ended: the process is stopping or the partition is gone, nothing was committed, and the event will come again.
//
// It does its own retrying, because an attempt is a transaction: install no Retry or PoisonQueue around it. Middlewares
// between it and the handler run in the transaction, with each attempt. Plain handlers and processors of Watermill's
// cqrs reach it by [TxFromContext]. Under a Router on watermill-kafka a record's origin is what those two say, in
// programs that import package kafka; the consumer group is [Config.Group]. Messages that next returns for publishing are refused: they would leave after the commit and
// be lost by a crash in between; the outbox is for them.
func (in *Inbox) Middleware(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		return nil, in.single(msg, next)
	}
}

// single brings one message to its final outcome, or to Failed when its context ends first.
func (in *Inbox) single(msg *message.Message, next message.HandlerFunc) error {
	started := time.Now()
	partition, err := in.partitionOf(msg)
	if err != nil {
		return err
	}
	it := &item{partition: partition}
	if in.recognize(it, msg, next); it.ignored {
		err = in.pass(it)
	} else {
		err = in.alone(it)
	}
	if err == nil {
		partition.settle(it)
	}
	in.done(it, started, err)
	in.resumeBehind(it)
	return err
}

// pass counts an event that has no handler in its key's order, where there is one. It runs nothing, so it is no suspect
// and cannot fail for a reason of its own.
func (in *Inbox) pass(it *item) error {
	if !in.orders(it) {
		return nil
	}
	if it.partition != nil {
		it.partition.upTo = it.last()
	}
	return in.insist(it.ctx, "pass over event", func(context.Context) error { return in.apply(it.ctx, []*item{it}) })
}

// orders says whether the event has a place in its key's order although no handler wants it.
func (in *Inbox) orders(it *item) bool { return in.cfg.Versioned && it.event.Version > 0 }

// read fills the item with the message. Its outcome is Applied when a transaction has to say more.
func (in *Inbox) read(it *item, msg *message.Message, next message.HandlerFunc) {
	if in.recognize(it, msg, next); it.wrong == nil {
		in.check([]*item{it})
	}
}

// recognize finds out what event it is, and whether there is a handler for it. It does not look into the payload.
func (in *Inbox) recognize(it *item, msg *message.Message, next message.HandlerFunc) {
	in.crash("received")
	it.ctx, it.msg, it.next, it.outcome = msg.Context(), msg, next, Applied
	it.origin, _ = in.originOf(msg)
	it.event, it.wrong = cloudevent.FromMessage(msg)
	it.waited = it.waited || it.partition.hasWaited(in.cfg.GapWait)
	switch it.decoded = it.wrong == nil; {
	case !it.decoded:
		it.wrong, it.outcome = failure.AsPermanent(it.wrong), Failed
	case !in.cfg.Handlers.Accepts(it.event.Type):
		it.ignored, it.outcome = true, Ignored
	default:
		it.entry = newEntry(it.event, it.origin)
	}
}

// check holds the events against their contract, up to the first one that breaks it. It returns those before it.
func (in *Inbox) check(items []*item) []*item {
	for i, it := range items {
		if it.ignored {
			continue
		}
		if err := in.cfg.Validate(it.event); err != nil {
			it.wrong, it.outcome = failure.AsPermanent(err), Failed
			return items[:i]
		}
	}
	return items
}

// run calls the Watermill handler with the transaction in the message, and takes it out again.
func (it *item) run(ctx context.Context, tx pgx.Tx) error {
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: tx, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = &codedError{CodePublishes, Permanent(errPublishes)}
	}
	return err
}

// alone brings an item to its final outcome: it tries until there is one.
func (in *Inbox) alone(it *item) error {
	retry, l := newRetry(in.cfg), it.letter()
	var gap time.Time // when it was first seen
	for {
		var err error
		if it.wrong == nil {
			_, err = in.attempt(it.ctx, []*item{it})
		}
		if it.wrong != nil {
			l.failed(it.wrong, time.Now())
			return in.giveUp(it, l)
		}
		if err == nil {
			_ = in.cfg.Host.Pause(it.ctx, nil, 0)
			return in.settle(it)
		}
		if it.ctx.Err() != nil {
			return fmt.Errorf("handle event: %w", context.Cause(it.ctx))
		}
		if errors.Is(err, errGap) {
			if gap.IsZero() {
				gap = time.Now()
			}
			if it.waited = time.Since(gap) >= in.cfg.GapWait; it.waited {
				it.partition.noteWait()
			}
			if err := in.cfg.Host.Pause(it.ctx, nil, min(in.cfg.RetryMin, in.cfg.GapWait)); err != nil {
				return err
			}
			continue
		}
		if died, ok := errors.AsType[*poison.DiedError](err); ok {
			l.attempts, l.first = died.Deaths-1, died.Since
			l.failed(&codedError{CodeProcessDied, failure.AsPermanent(died)}, time.Now())
			return in.giveUp(it, l)
		}
		if _, unclear := errors.AsType[*guardError](err); unclear && !it.eager {
			// Perhaps another transaction had the key's watermark for all that time. The next attempt takes it first, so
			// that what is late then is the handler.
			it.eager, err = true, failure.AsTransient(err)
		}
		l.failed(err, time.Now())
		again := retry.after(err)
		in.metrics.retries.WithLabelValues(string(again.class)).Inc()
		if !again.worthwhile {
			return in.giveUp(it, l)
		}
		in.log.WarnContext(it.ctx, "attempt failed", "event_id", it.event.ID, "event_type", it.event.Type,
			"correlation_id", it.event.CorrelationID(), "attempt", l.attempts, "class", again.class,
			"retry_in", again.pause, "error", err)
		if err := in.cfg.Host.Pause(it.ctx, err, again.pause); err != nil {
			return err
		}
	}
}

// settle writes the dead letter of an outcome that wants one.
func (in *Inbox) settle(it *item) error {
	var reason error
	switch {
	case it.outcome == Conflict && in.cfg.OnConflict == ConflictError:
		reason = &codedError{CodeConflict, failure.AsPermanent(errConflict)}
	case it.outcome == Expired:
		reason = &codedError{CodeTooOld, failure.AsPermanent(ErrExpired)}
	case it.outcome == Conflict:
		return in.noteConflict(it)
	default:
		return nil
	}
	l := it.letter()
	l.failed(reason, time.Now())
	return in.giveUp(it, l)
}

const markConflict = `
update public.inbox set metadata = metadata || jsonb_build_object('conflict', $4::text)
where consumer = $1 and event_id = $2 and event_time = $3`

// noteConflict leaves a mark of a record that is only warned of on the row of the event that has its id.
func (in *Inbox) noteConflict(it *item) error {
	at := fmt.Sprintf("%s[%d]@%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	return in.insist(it.ctx, "note conflict", func(ctx context.Context) error {
		_, err := in.cfg.Pool.Exec(ctx, markConflict, in.cfg.Consumer, it.entry.id, it.entry.place, at)
		return err
	})
}

// done tells everybody who wants to know.
func (in *Inbox) done(it *item, started time.Time, err error) {
	observe(in, it.outcome, started)
	in.report(it, err)
	in.cfg.Host.Handled(it.event, it.outcome)
	in.crash("acknowledging")
}

// report logs what somebody may want to know about; an applied event is not news.
func (in *Inbox) report(it *item, err error) {
	level := slog.LevelInfo
	if it.outcome == Conflict && in.cfg.OnConflict == ConflictError {
		return // giveUp has said why
	}
	switch it.outcome {
	case Applied, Ignored:
		level = slog.LevelDebug
	case Conflict, Gap, Parked, Failed:
		level = slog.LevelWarn
	case Dead, Expired:
		return // giveUp has said why
	case Duplicate, Stale, waits:
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
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	in.log.Log(it.ctx, level, "event settled", attrs...)
}
