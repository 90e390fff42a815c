package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/poison"
)

// item is one delivery on its way through a transaction.
type item struct {
	ctx         context.Context // of the delivery; the handler gets one derived from it
	msg         *message.Message
	started     time.Time          // when it was taken
	partition   *poison.Assignment // of the record
	event       cloudevent.Event
	origin      cloudevent.Origin
	entry       entry
	key         *keyState // of its event, in the transaction under way
	decoded     bool      // it is an event
	invalid     error     // why it needs no transaction to be given up
	outcome     Outcome
	letter      *deadletter.Letter                  // see failures
	handle      func(context.Context, pgx.Tx) error // of Process
	next        message.HandlerFunc                 // of a message
	filedBefore bool                                // as a dead letter
	waited      bool                                // for its predecessor, for as long as it may
	ignored     bool                                // of a type that has no handler: its version may count all the same
	jumps       bool                                // its version is too far above its key's
	unblocks    bool                                // what is parked in its key may have waited for it
	acceptGap   bool                                // an operator goes on without its predecessors
	force       bool                                // also over a jump
	lockFirst   bool                                // its watermark is moved before its handler runs
}

// engine runs transactions. It knows neither partitions nor retries.
type engine struct {
	cfg   *Config
	log   *slog.Logger
	ids   idTable
	order keyOrder
}

// apply is one transaction in which the items' ids are recorded, then the handlers of the new ones run in order, then
// everything is committed; or none, where a look shows that nothing is new. It is the same for one item and for many.
// With an error nothing is committed; an [*itemError] says whose fault it is, where that is known. The counts of
// attempts at records up to an offset go with it.
func (e *engine) apply(ctx context.Context, items []*item, upTo int64) error {
	end := e.cfg.Spans.Process(e.cfg.Consumer, len(items), func(i int) *cloudevent.Event { return &items[i].event })
	err := e.transact(ctx, func(ctx context.Context, w *work) error { return e.handleItems(ctx, w, items, upTo) })
	end(err)
	if err != nil {
		for _, it := range items {
			it.outcome = Failed
		}
		return err
	}
	p, isNew := items[0].partition, func(it *item) bool { return it.outcome != Duplicate }
	if p.Repeats++; slices.ContainsFunc(items, isNew) {
		p.Repeats = 0
	}
	e.crash("committed")
	return nil
}

// lookAfter is how many deliveries in a row must have brought nothing new before the next one is looked up first.
const lookAfter = 3

// handleItems is what happens inside the transaction, which begins with the first statement behind the look.
//
// Redeliveries come in long runs: after a crash everything since the last committed offset. In such a run a look, in
// one round trip, is all they need, since a row that is there stays; outside of one nothing is looked up. What is not
// found is not decided by the look: its insert will. There is none for suspects, which were looked up and whose counts
// go with a transaction, and none for an ignored event: whether its version is counted is in another table.
func (e *engine) handleItems(ctx context.Context, w *work, items []*item, upTo int64) error {
	p, ignored := items[0].partition, func(it *item) bool { return it.ignored }
	if p.Repeats >= lookAfter && !p.Suspicious() && !slices.ContainsFunc(items, ignored) {
		if all, err := e.ids.allProcessed(ctx, w.conn, items); err != nil || all {
			return err
		}
	}
	e.crash("beginning")
	err := e.record(ctx, w, items)
	if err == nil && items[0].lockFirst {
		err = w.ready(ctx)
	}
	if err != nil {
		return w.waitedInVain(err)
	}
	e.crash("recorded")
	for i, it := range items {
		if it.outcome != Applied {
			continue
		}
		e.crash("handling")
		if err := e.callHandler(ctx, w, i, it); err != nil {
			return err
		}
		e.crash("handled")
	}
	e.crash("committing")
	if !p.Suspicious() {
		return nil
	}
	sql, args := p.Forget(upTo)
	return Queue(ctx, w, sql, args...)
}

// record records the ids and keeps the order of the keys: it finds, of the items that are new, those that must not run
// now. It follows them in order, so that an event sees what the ones before it in the same batch change. The outcome of
// an item whose handler is to run is Applied.
func (e *engine) record(ctx context.Context, tx pgx.Tx, items []*item) error {
	keys, err := e.ids.record(ctx, tx, items)
	if err == nil && slices.ContainsFunc(keys, func(k keyState) bool { return k.held }) {
		err = e.order.lockHolders(ctx, tx, keys)
	}
	if err != nil {
		return err
	}
	for i, it := range items {
		if it.ignored {
			err = e.order.passOver(ctx, tx, it)
		} else if it.outcome == Applied {
			it.outcome, err = e.order.place(ctx, tx, it)
		}
		if err != nil {
			return &itemError{item: i, err: err}
		}
	}
	for _, it := range items {
		if it.outcome == Parked || it.outcome == Gap {
			err = e.park(ctx, tx, it)
		}
		if err == nil && (it.outcome == Parked || it.outcome == Gap || it.outcome == Stale) {
			err = e.ids.markOutcome(ctx, tx, it)
		}
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(keys, keyState.moved) {
		return nil
	}
	return e.order.advance(ctx, tx, keys)
}

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// callHandler runs the handler of the item with that index. A Watermill handler finds the transaction in the message,
// for as long as it runs. A panic is an error like any other: the transaction is rolled back.
func (e *engine) callHandler(ctx context.Context, w *work, i int, it *item) (err error) {
	w.item, w.row = i, &it.entry
	defer func() {
		if p := recover(); p != nil {
			err = &codedError{CodeHandlerPanic, fmt.Errorf("handler panicked: %v", p)}
		}
		w.item, w.row = noItem, nil
		switch {
		case w.err != nil:
			err = w.err // a failed queued write causes the handler's error
		case err != nil:
			err = &itemError{item: i, err: err}
		}
	}()
	if it.next == nil {
		return it.handle(ctx, w)
	}
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: w, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = &codedError{CodePublishes, Permanent(errPublishes)}
	}
	return err
}

// crash is the crash point inbox.<consumer>.<point>.
func (e *engine) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + e.cfg.Consumer + "." + point)
	}
}

// insist repeats a statement of the inbox's own until it works or the delivery is over.
func (e *engine) insist(ctx context.Context, what string, do func(context.Context) error) error {
	pauses := e.cfg.Backoff()
	for {
		limited, cancel := context.WithTimeout(ctx, e.cfg.HandlerTimeout)
		err := do(limited)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), err))
		}
		wait := pauses.Next()
		e.log.WarnContext(ctx, "inbox statement failed", "what", what, "retry_in", wait, "error", err)
		if err := e.cfg.Host.Pause(ctx, err, wait); err != nil {
			return err
		}
	}
}

// transact runs do in a transaction and commits it, or rolls it back when do or a queued write fails. It bounds both,
// and says of an attempt that came too late that it did.
func (e *engine) transact(parent context.Context, do func(context.Context, *work) error) error {
	deadline := time.Now().Add(e.cfg.HandlerTimeout)
	ctx, cancel := context.WithDeadline(parent, deadline)
	defer cancel()
	conn, err := e.cfg.Pool.Acquire(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		// Others have all connections, or the server does not answer a new one. That is no event's fault.
		err = failure.AsTransient(err)
	}
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	// A connection that is still in a transaction is closed when it is released, also when do panics.
	defer conn.Release()
	w := &work{conn: conn.Conn(), consumer: e.cfg.Consumer, item: noItem}
	err = do(ctx, w)
	if w.err != nil {
		err = w.err // it came first and causes do's error
	}
	if err == nil {
		err = w.commit(ctx)
	}
	if err != nil && w.Tx != nil && !w.conn.IsClosed() {
		w.rollback(ctx)
	}
	if err != nil && parent.Err() == nil && !time.Now().Before(deadline) {
		err = late(err, e.cfg.HandlerTimeout)
	}
	return err
}
