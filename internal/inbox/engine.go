package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

// item is one delivery on its way through a transaction.
type item struct {
	ctx       context.Context // of the delivery; the handler gets one derived from it
	msg       *message.Message
	partition *partition // nil when no broker delivered it
	event     cloudevent.Event
	origin    cloudevent.Origin
	entry     entry
	decoded   bool  // it is an event
	wrong     error // why it needs no transaction to be given up
	outcome   Outcome
	handle    func(context.Context, pgx.Tx) error // of Process
	next      message.HandlerFunc                 // of a message
	again     bool                                // it was given up before
	waited    bool                                // for its predecessor, for as long as it may
	ignored   bool                                // of a type that has no handler: its version may count all the same
	jumps     bool                                // its version is too far above its key's
	frees     bool                                // what is parked in its key may have waited for it
	accepts   bool                                // an operator goes on without its predecessors
	forced    bool                                // also over a jump
	eager     bool                                // its watermark is moved before its handler runs, not only sent after it
}

// apply is the engine: one transaction in which the items' ids are recorded, then the handlers of the new ones run in
// order, then everything is committed; or none, where a look shows that nothing is new. It is the same for one item and
// for many. With an error nothing is committed; an [*itemError] says whose fault it is, where that is known.
func (in *Inbox) apply(parent context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	deadline := time.Now().Add(in.cfg.HandlerTimeout)
	ctx, cancel := context.WithDeadline(parent, deadline)
	defer cancel()
	for _, it := range items {
		it.outcome = Failed
	}
	done, err := in.look(ctx, items)
	if err == nil && !done {
		err = in.transact(ctx, func(w *work) error { return in.fill(ctx, w, items) })
	}
	if err != nil && parent.Err() == nil && !time.Now().Before(deadline) {
		err = late(err, in.cfg.HandlerTimeout)
	}
	if err != nil {
		for _, it := range items {
			it.outcome = Failed
		}
		return err
	}
	items[0].partition.noteRepeats(items)
	in.crash("committed")
	return nil
}

// fill is what happens inside the transaction.
func (in *Inbox) fill(ctx context.Context, w *work, items []*item) error {
	in.crash("beginning")
	err := in.record(ctx, w, items)
	if err == nil && items[0].eager {
		err = w.ready(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// It waited for another owner's transaction, or for the server. That is not the event's fault.
		err = failure.AsTransient(err)
		w.err = err
	}
	if err != nil {
		return err
	}
	in.crash("recorded")
	for i, it := range items {
		if it.outcome != Applied {
			continue
		}
		w.item = i
		in.crash("handling")
		err := in.call(ctx, w, it)
		if w.err != nil {
			return w.err // what was queued before is the cause of whatever the handler says
		}
		if err != nil {
			return &itemError{i, err}
		}
		in.crash("handled")
	}
	w.item = noItem
	if p := items[0].partition; p != nil {
		if err := p.forgetAttempts(ctx, w, p.upTo); err != nil {
			return err
		}
	}
	in.crash("committing")
	return nil
}

// call runs the handler. A panic is an error like any other: the transaction is rolled back.
func (in *Inbox) call(ctx context.Context, w *work, it *item) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &codedError{CodeHandlerPanic, fmt.Errorf("handler panicked: %v", p)}
		}
	}()
	if it.next == nil {
		return it.handle(ctx, w)
	}
	return it.run(ctx, w)
}

// crash is the crash point inbox.<consumer>.<point>.
func (in *Inbox) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + in.cfg.Consumer + "." + point)
	}
}

// one runs a single item that is no message and has no one to retry it.
func (in *Inbox) one(ctx context.Context, it *item) (Outcome, error) {
	err := in.apply(ctx, []*item{it})
	if err == nil && it.outcome == Expired {
		err = ErrExpired
	}
	if whose, known := errors.AsType[*itemError](err); known {
		err = whose.err
	}
	return it.outcome, err
}

func observe(in *Inbox, outcome Outcome, started time.Time) {
	in.metrics.messages.WithLabelValues(string(outcome)).Inc()
	in.metrics.seconds.Observe(time.Since(started).Seconds())
}
