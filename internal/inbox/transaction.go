package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox/deadletter"
)

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
	tx := &handlerTx{consumer: in.cfg.Consumer}
	err := in.transact(ctx, tx, items)
	endSpan(err)
	if err == nil {
		in.crash("committed")
		return nil
	}
	isLate := ctx.Err() != nil && parent.Err() == nil
	for _, it := range items {
		it.attemptResult, it.wasLate = attemptResult{outcome: Failed}, isLate
	}
	if deadletter.RepairSequence(parent, in.cfg.Pool, err) {
		return failure.AsTransient(err)
	}
	if isLate {
		return in.asTimeout(err, tx.handling)
	}
	return asLostRace(err)
}

// asTimeout separates a slow handler from a wait for the database.
func (in *Inbox) asTimeout(err error, handling bool) error {
	if handling { // pgx may report a closed connection
		return &codedError{CodeHandlerTimeout, fmt.Errorf("handler ran longer than %s: %w: %s", in.cfg.HandlerTimeout,
			context.DeadlineExceeded, err.Error())}
	}
	return failure.AsTransient(err)
}

// An event without a handler needs one if its version counts, a point moves, or its dead letter is settled.
func (in *Inbox) needsTransaction(it *item) bool {
	return !it.ignored || in.cfg.Order != Unordered && it.event.Version > 0 || it.origin.From != nil || it.replay != nil
}

// Begin travels with the first statements, commit with the last.
func (in *Inbox) transact(ctx context.Context, tx *handlerTx, items []*item) error {
	conn, err := in.cfg.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release() // closes a connection in a transaction
	keys, err := in.begin(ctx, conn.Conn(), tx, items)
	if err == nil {
		err = in.runItems(ctx, tx, items, keys)
	}
	if err == nil {
		err = tx.commit(ctx)
	}
	if err != nil && tx.Tx != nil {
		tx.rollback(ctx)
	}
	return err
}

func (in *Inbox) begin(ctx context.Context, conn *pgx.Conn, tx *handlerTx, items []*item) (keys, error) {
	ks, ids, batch := in.collectKeys(items), in.collectIDs(items), &pgx.Batch{}
	batch.BeginTx(readCommitted)
	in.movePoint(batch, items)
	ks.lock(batch, in.cfg.Consumer)
	ids.insert(batch)
	results := conn.SendBatch(ctx, batch)
	tx.Tx = results.Tx()
	if err := results.Close(); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return ks, ids.compare(ctx, tx)
}

// A replay is a batch of one.
func (in *Inbox) runItems(ctx context.Context, tx *handlerTx, items []*item, ks keys) error {
	isReplay := items[0].replay != nil
	if isReplay {
		if err := in.lockDeadLetter(ctx, tx, items[0]); err != nil {
			return err
		}
	}
	for _, it := range items {
		if err := in.runItem(ctx, tx, it, ks.of(it)); err != nil {
			return err
		}
	}
	if err := tx.endHandling(ctx, items[0]); err != nil {
		return err
	}
	in.finishRows(tx, items)
	in.saveKeys(tx, ks)
	if isReplay {
		return settleDeadLetter(ctx, tx, items[0])
	}
	return nil
}

func (in *Inbox) runItem(ctx context.Context, tx *handlerTx, it *item, k *key) error {
	switch it.outcome = in.decide(it, k); it.outcome {
	case Applied:
		tx.handling = true
		return in.runHandler(ctx, tx, it)
	case Gap, Parked, Dead, Conflict, Expired:
		if it.replay != nil {
			return it.replayError(it.reason(k))
		}
		return in.storeDeadLetter(ctx, tx, it, k)
	case Stale:
		if it.comesAgain { // the later one must not be its duplicate
			return errComesAgain
		}
	}
	return nil
}

var errComesAgain = errors.New("the id of a stale event comes again in its batch")

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// A panic is an error like any other.
func (in *Inbox) runHandler(ctx context.Context, tx *handlerTx, it *item) (err error) {
	in.crash("handling")
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = &codedError{CodeHandlerPanic, fmt.Errorf("handler panicked: %v", p)}
		}
		it.took, tx.eventID = time.Since(began), ""
		in.crash("handled")
	}()
	tx.eventID = it.event.ID
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: tx, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = PermanentAs(CodePublishes, errPublishes)
	}
	return errors.Join(tx.err, err)
}

// crash is the crash point inbox.<consumer>.<point> of tests.
func (in *Inbox) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + in.cfg.Consumer + "." + point)
	}
}
