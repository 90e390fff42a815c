package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
		it.outcome, it.stored, it.wasLate = Failed, nil, isLate
	}
	if deadletter.RepairSequence(parent, in.cfg.Pool, err) {
		return failure.AsTransient(err)
	}
	if isLate {
		return in.asTimeout(err, tx.handling)
	}
	return asLostRace(err)
}

// An event without a handler needs one if its version counts or a point moves.
func (in *Inbox) needsTransaction(it *item) bool {
	return !it.ignored || in.cfg.Order != Unordered && it.event.Version > 0 || it.origin.From != nil
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
		err = in.handleItemsInTx(ctx, tx, items, keys)
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

// The order is that of the checks in doc.go. A replay is a batch of one.
func (in *Inbox) handleItemsInTx(ctx context.Context, tx *handlerTx, items []*item, ks keys) error {
	if err := in.claimLetter(ctx, tx, items[0]); err != nil {
		return err
	}
	for _, it := range items {
		if err := in.handleInTx(ctx, tx, it, ks.of(it)); err != nil {
			return err
		}
	}
	if err := tx.endHandling(ctx, items[0]); err != nil {
		return err
	}
	in.finishRows(tx, items)
	in.saveKeys(tx, ks)
	return in.settleLetter(ctx, tx, items[0])
}

func (in *Inbox) handleInTx(ctx context.Context, tx *handlerTx, it *item, k *key) error {
	switch it.outcome = in.decide(it, k); it.outcome {
	case Applied:
		tx.handling = true
		return in.runHandler(ctx, tx, it)
	case Gap, Parked, Dead, Conflict, Expired:
		return in.storeLetter(ctx, tx, it, k)
	case Stale:
		if it.comesAgain { // the later one must not be its duplicate
			return errComesAgain
		}
	}
	return nil
}

var errComesAgain = errors.New("the id of a stale event comes again in its batch")

// asTimeout separates a slow handler from a wait for the database.
func (in *Inbox) asTimeout(err error, handling bool) error {
	if handling { // pgx may report a closed connection
		return &codedError{CodeHandlerTimeout, fmt.Errorf("handler ran longer than %s: %w: %s", in.cfg.HandlerTimeout,
			context.DeadlineExceeded, err.Error())}
	}
	return failure.AsTransient(err)
}

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

// handlerTx sends queued writes before the next statement that needs an answer, or before the commit.
type handlerTx struct {
	pgx.Tx
	consumer, eventID string // of the current handler
	handling          bool
	queue             pgx.Batch
	mustChange        bool  // a queued write must change a row
	err               error // of a queued write
}

// Queue is tx.Exec for a write whose result the handler does not need: it saves a round trip. Its error rolls the event
// back. In another transaction the write runs immediately.
func Queue(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	return QueueRows(ctx, tx, nil, sql, args...)
}

// QueueRows is [Queue] for a write that must change a row: else the event fails with noRows.
func QueueRows(ctx context.Context, tx pgx.Tx, noRows error, sql string, args ...any) error {
	check := func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return noRows
		}
		return nil
	}
	if q, is := tx.(*handlerTx); is {
		q.queue.Queue(sql, args...).Exec(check)
		q.mustChange = q.mustChange || noRows != nil
		return nil
	}
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return err
	}
	return check(tag)
}

// MaxMetadataBytes is the longest metadata of a handler, as JSON.
const MaxMetadataBytes = 4096

var errMetadata = fmt.Errorf("inbox: metadata needs a handler's transaction and at most %d bytes of JSON",
	MaxMetadataBytes)

const updateMetadata = `
update public.inbox set metadata = metadata || jsonb_build_object('caller', $4::jsonb)
where consumer = $1 and event_id = $2 and event_time = $3`

// PutMetadata stores the handler's data in the event's inbox row. A second call replaces the first. It must not contain
// people's texts: [Lookup] and [History] show it. Its errors are permanent.
func PutMetadata(ctx context.Context, tx pgx.Tx, metadata map[string]any) error {
	encoded, err := json.Marshal(metadata)
	handler, is := tx.(*handlerTx)
	if err != nil || !is || handler.eventID == "" || len(encoded) > MaxMetadataBytes {
		return Permanent(errors.Join(err, errMetadata))
	}
	id := handler.eventID
	return Queue(ctx, tx, updateMetadata, handler.consumer, id, idTime(id), string(encoded))
}

// The last writes travel with the commit, unless one of them may prevent it, or the last attempt timed out. They are
// then sent before it, to separate a slow write from a slow commit. So are those of a replay.
func (q *handlerTx) endHandling(ctx context.Context, first *item) error {
	err := ctx.Err()
	if q.mustChange || first.wasLate || first.replay != nil {
		err = cmp.Or(q.flush(ctx), err)
	}
	q.handling = q.handling && err != nil
	return err
}

// commit sends the queued writes and commits.
func (q *handlerTx) commit(ctx context.Context) error {
	q.queue.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" { // a handler hid an error
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return q.flush(ctx)
}

const rollbackTimeout = 5 * time.Second

// rollback frees the locks immediately, also when ctx has ended.
func (q *handlerTx) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = q.Tx.Rollback(ctx) // if it fails, the connection is closed
}

func (q *handlerTx) flush(ctx context.Context) error {
	if q.err == nil && q.queue.Len() > 0 {
		batch := q.queue
		q.queue = pgx.Batch{}
		q.err = q.Tx.SendBatch(ctx, &batch).Close()
	}
	return q.err
}

// Exec implements [pgx.Tx].
func (q *handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := q.flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return q.Tx.Exec(ctx, sql, args...)
}

// Query implements [pgx.Tx].
func (q *handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := q.flush(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
	}
	return q.Tx.Query(ctx, sql, args...)
}

// QueryRow implements [pgx.Tx].
func (q *handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := q.flush(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).QueryRow()
	}
	return q.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch implements [pgx.Tx].
func (q *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := q.flush(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return q.Tx.SendBatch(ctx, b)
}

// CopyFrom implements [pgx.Tx].
func (q *handlerTx) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource,
) (int64, error) {
	if err := q.flush(ctx); err != nil {
		return 0, err
	}
	return q.Tx.CopyFrom(ctx, table, columns, rows)
}

// Begin implements [pgx.Tx]: it starts a savepoint.
func (q *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := q.flush(ctx); err != nil {
		return nil, err
	}
	return q.Tx.Begin(ctx)
}

var errNotYours = errors.New("the inbox ends the transaction, not its handler")

// Commit implements [pgx.Tx]. It refuses.
func (*handlerTx) Commit(context.Context) error { return errNotYours }

// Rollback implements [pgx.Tx]. It refuses.
func (*handlerTx) Rollback(context.Context) error { return errNotYours }
