package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
)

// transaction is one attempt at some items: all of their outcomes are committed, or nothing. A replay has one item.
type transaction struct {
	in       *Inbox
	items    []*item
	ids      *idSet
	keys     keys
	conn     *pgx.Conn
	tx       *handlerTx // from begin on
	handling bool       // handlers run, or their writes: a timeout is theirs
}

// A statement that waited for another owner's transaction must see its rows.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// apply runs one transaction. After an error the items may be tried again: nothing is committed, or the answer to the
// commit was lost, and the ids are known.
func (in *Inbox) apply(parent context.Context, items []*item) error {
	if !slices.ContainsFunc(items, in.needsTransaction) {
		for _, it := range items {
			it.outcome = Ignored
		}
		return nil
	}
	endSpan := in.cfg.Spans.Process(in.cfg.Consumer, items[0].origin.Topic, len(items),
		func(i int) *event.Event { return &items[i].event })
	ctx, cancel := context.WithTimeout(parent, in.cfg.HandlerTimeout)
	defer cancel()
	t := &transaction{
		in: in, items: items, ids: collectIDs(in.cfg.Consumer, items), keys: collectKeys(in.cfg.Order, items),
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

// Another transaction was first to insert a key, or the sequence of dead letters was set back.
func asTransient(err error) error {
	taken, is := errors.AsType[*pgconn.PgError](err)
	if is && (taken.ConstraintName == "inbox_key_pkey" || taken.ConstraintName == "dead_letter_pkey") {
		return failure.AsTransient(err)
	}
	return err
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
	steps := []func(context.Context) error{ // the two with a dead letter are a replay's
		t.begin, t.lockDeadLetter, t.runItems, t.endHandling, t.save, t.settleDeadLetter, t.commit,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			t.rollback(ctx)
			return err
		}
	}
	return nil
}

// begin moves the point, locks the keys, inserts the ids, and compares those that were there.
func (t *transaction) begin(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.BeginTx(readCommitted)
	t.movePoint(batch)
	t.keys.lock(batch, t.in.cfg.Consumer)
	t.ids.insert(batch)
	results := t.conn.SendBatch(ctx, batch)
	t.tx = &handlerTx{Tx: results.Tx(), consumer: t.in.cfg.Consumer}
	if err := results.Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return t.ids.compare(ctx, t.tx)
}

// runItems decides about each item, and runs its handler or stores its dead letter.
func (t *transaction) runItems(ctx context.Context) (err error) {
	for _, it := range t.items {
		k := t.keys.of(it)
		var reason error
		it.outcome, reason = it.decide(t.in.cfg.Order, k)
		switch {
		case reason != nil:
			err = t.storeDeadLetter(ctx, it, k, reason)
		case it.ignored:
			it.outcome = Ignored
		case it.outcome == Applied:
			err = t.runHandler(ctx, it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errPublishes = errors.New("handler returned messages to publish: write them to the outbox in its transaction")

// A panic is an error like any other.
func (t *transaction) runHandler(ctx context.Context, it *item) (err error) {
	t.in.crash("handling")
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = &codedError{CodeHandlerPanic, fmt.Errorf("handler panicked: %v", p)}
			t.in.log.ErrorContext(it.ctx, "handler panicked", "event_id", it.event.ID, "event_type", it.event.Type,
				"correlation_id", it.event.CorrelationID(), "panic", p, "stack", string(debug.Stack()))
		}
		it.took, t.tx.eventID = time.Since(began), ""
		t.in.crash("handled")
	}()
	t.handling, t.tx.eventID = true, it.event.ID
	defer it.msg.SetContext(it.ctx)
	it.msg.SetContext(&delivery{Context: ctx, message: it.ctx, tx: t.tx, event: &it.event})
	produced, err := it.next(it.msg)
	if err == nil && len(produced) > 0 {
		err = PermanentAs(CodePublishes, errPublishes)
	}
	return errors.Join(t.tx.err, err)
}

// endHandling ends the handlers' time. Their last writes travel with the commit, unless one of them may prevent it.
// After an attempt that timed out they are sent before it, to separate a slow write from a slow commit.
func (t *transaction) endHandling(ctx context.Context) error {
	if first := t.items[0]; t.tx.mustChange || first.wasLate || first.replay != nil {
		if err := t.tx.flush(ctx); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.handling = false
	return nil
}

func (t *transaction) save(context.Context) error {
	t.ids.finish(&t.tx.queue)
	t.keys.save(&t.tx.queue, t.in.cfg.Consumer)
	return nil
}

// commit sends the queued writes and commits.
func (t *transaction) commit(ctx context.Context) error {
	t.tx.queue.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" { // a handler hid an error
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return t.tx.flush(ctx)
}

const rollbackTimeout = 5 * time.Second

// rollback frees the locks immediately, also when ctx has ended.
func (t *transaction) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = t.tx.Tx.Rollback(ctx) // if it fails, the connection is closed
}

// crash is the crash point inbox.<consumer>.<point> of tests.
func (in *Inbox) crash(point string) {
	if fault.Enabled {
		fault.Here("inbox." + in.cfg.Consumer + "." + point)
	}
}
