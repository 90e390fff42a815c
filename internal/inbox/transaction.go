package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

// transaction is one attempt at some items: all of their outcomes are committed, or nothing. A replay has one item.
type transaction struct {
	*handlerTx
	in    *Inbox
	conn  *pgx.Conn
	items []*item
	ids   *idSet
	keys  keys
}

// A statement that waited for another owner's transaction must see its rows.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// apply commits nothing with an error.
func (in *Inbox) apply(parent context.Context, items []*item) error {
	if !slices.ContainsFunc(items, in.needsTransaction) {
		for _, it := range items {
			it.outcome = Ignored
		}
		return nil
	}
	for _, it := range items {
		it.attemptResult = attemptResult{}
	}
	endSpan := in.cfg.Spans.Process(in.cfg.Consumer, items[0].origin.Topic, len(items),
		func(i int) *event.Event { return &items[i].event })
	ctx, cancel := context.WithTimeout(parent, in.cfg.HandlerTimeout)
	defer cancel()
	t := &transaction{
		handlerTx: &handlerTx{consumer: in.cfg.Consumer}, in: in, items: items,
		ids: collectIDs(in.cfg.Consumer, items), keys: collectKeys(in.cfg.Order, items),
	}
	err := t.run(ctx)
	endSpan(err)
	if err == nil {
		in.crash("committed")
		return nil
	}
	isLate := ctx.Err() != nil && parent.Err() == nil
	for _, it := range items {
		it.attemptResult, it.wasLate = attemptResult{outcome: Failed}, isLate
	}
	switch {
	case isLate && !t.handling: // it waited for the database
		return failure.AsTransient(err)
	case isLate: // pgx may report a closed connection
		return &codedError{CodeHandlerTimeout, fmt.Errorf("handler ran longer than %s: %w: %s", in.cfg.HandlerTimeout,
			context.DeadlineExceeded, err.Error())}
	}
	return asTransient(err)
}

// An ignored event needs one if its version counts, a point moves, or its dead letter is settled.
func (in *Inbox) needsTransaction(it *item) bool {
	return !it.ignored || in.cfg.Order != Unordered && it.event.Version > 0 || it.origin.From != nil || it.replay != nil
}

// run takes two round trips: begin travels with the first statements, commit with the last.
func (t *transaction) run(ctx context.Context) error {
	conn, err := t.in.cfg.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release() // closes a connection in a transaction
	t.conn = conn.Conn()
	steps := []func(context.Context) error{t.begin, t.lockDeadLetter, t.runItems, t.endHandling, t.finish, t.commit}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			t.rollback(ctx)
			return err
		}
	}
	return nil
}

// begin locks the keys and inserts the ids.
func (t *transaction) begin(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.BeginTx(readCommitted)
	t.movePoint(batch)
	t.keys.lock(batch, t.consumer)
	t.ids.insert(batch)
	results := t.conn.SendBatch(ctx, batch)
	t.Tx = results.Tx()
	if err := results.Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return t.ids.compare(ctx, t)
}

// runItems decides about each item, and runs its handler or stores its dead letter.
func (t *transaction) runItems(ctx context.Context) (err error) {
	for _, it := range t.items {
		k := t.keys.of(it)
		var reason error
		it.outcome, reason = it.decide(t.in.cfg.Order, k)
		switch {
		case reason != nil && it.replay == nil:
			err = t.storeDeadLetter(ctx, it, k, reason)
		case it.outcome == Dead:
			err = reason
		case reason != nil:
			err = refuse(codeOf(reason), reason)
		case it.ignored:
			it.outcome = Ignored
		case it.outcome == Applied:
			err = t.runHandler(ctx, it)
		case it.outcome == Stale && it.comesAgain: // the later one must not be its duplicate
			err = errComesAgain
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errComesAgain = errors.New("the id of a stale event comes again in its batch")

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// A panic is an error like any other.
func (t *transaction) runHandler(ctx context.Context, it *item) (err error) {
	t.in.crash("handling")
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = &codedError{CodeHandlerPanic, fmt.Errorf("handler panicked: %v", p)}
		}
		it.took, t.eventID = time.Since(began), ""
		t.in.crash("handled")
	}()
	t.handling, t.eventID = true, it.event.ID
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: t.handlerTx, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = PermanentAs(CodePublishes, errPublishes)
	}
	return errors.Join(t.err, err)
}

// The last writes travel with the commit, unless one of them may prevent it. After an attempt that timed out they are
// sent before it, to separate a slow write from a slow commit.
func (t *transaction) endHandling(ctx context.Context) error {
	err := ctx.Err()
	if first := t.items[0]; t.mustChange || first.wasLate || first.replay != nil {
		err = cmp.Or(t.flush(ctx), err)
	}
	t.handling = t.handling && err != nil
	return err
}

func (t *transaction) finish(ctx context.Context) error {
	t.ids.finish(&t.queue)
	t.keys.save(&t.queue, t.consumer)
	return t.settleDeadLetter(ctx)
}

// crash is the crash point inbox.<consumer>.<point> of tests.
func (in *Inbox) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + in.cfg.Consumer + "." + point)
	}
}
