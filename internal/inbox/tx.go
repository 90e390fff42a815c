package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/failure"
)

// work is the transaction that handlers get: pgx's, brought up to date before anything is asked of it. Begin travels
// with its first statement and commit with its last queued write, which saves a round trip each.
type work struct {
	pgx.Tx // nil before the first statement

	conn     *pgx.Conn
	consumer string

	item  int    // whose handler runs
	row   *entry // its row, in that consumer's inbox; nil: no handler runs
	queue []queued
	err   error // of the first queued write that failed; nothing is committed after it
}

var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// commit sends what is queued and commits. It is one round trip unless a write must affect a row, and none where
// nothing was asked.
func (w *work) commit(ctx context.Context) error {
	if w.Tx == nil && len(w.queue) == 0 {
		return nil
	}
	if slices.ContainsFunc(w.queue, func(q queued) bool { return q.none != nil }) {
		if err := w.ready(ctx); err != nil {
			return err
		}
	}
	if w.err != nil {
		return w.err
	}
	queue := append(w.queue, queued{item: noItem, sql: commit})
	w.queue = nil
	return sendQueue(ctx, w, queue)
}

const rollbackLimit = 5 * time.Second

// rollback frees the transaction's locks at once, also when its context has ended. Where it fails the connection is
// closed, which does the same.
func (w *work) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
	defer cancel()
	if _, err := w.conn.Exec(ctx, `rollback`); err != nil {
		_ = w.conn.Close(ctx)
	}
}

// ready begins and sends what is queued, so that the next statement sees it. A failure is kept, because what follows
// may not look at it: the transaction is broken then, or the check of its rows failed, and the engine commits neither.
func (w *work) ready(ctx context.Context) (err error) {
	if w.Tx == nil {
		if w.Tx, err = w.conn.BeginTx(ctx, readCommitted); err != nil {
			w.Tx = nil
			return fmt.Errorf("begin: %w", err)
		}
	}
	if queue := w.queue; len(queue) > 0 && w.err == nil {
		w.queue = nil
		w.err = sendQueue(ctx, w, queue)
	}
	return w.err
}

// waitedInVain makes an error before any handler has run the surroundings' fault where the time ended with it: it
// waited for another owner's transaction, or for the server. That is not the event's fault.
func (w *work) waitedInVain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = failure.AsTransient(err)
		w.err = err
	}
	return err
}

func (w *work) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := w.ready(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return w.Tx.Exec(ctx, sql, args...)
}

// Query and QueryRow report a failed queued write as their own error.
func (w *work) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := w.ready(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
	}
	return w.Tx.Query(ctx, sql, args...)
}

func (w *work) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := w.ready(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).QueryRow()
	}
	return w.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch sends the first batch with a begin before it.
func (w *work) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if w.Tx != nil {
		if err := w.ready(ctx); err != nil {
			return pgx.FailedBatchResults(b, err)
		}
		return w.Tx.SendBatch(ctx, b)
	}
	whole := &pgx.Batch{}
	whole.BeginTx(readCommitted)
	whole.QueuedQueries = append(whole.QueuedQueries, b.QueuedQueries...)
	results := w.conn.SendBatch(ctx, whole)
	w.Tx = results.Tx()
	if _, err := results.Exec(); err != nil {
		err = errors.Join(fmt.Errorf("begin: %w", err), results.Close())
		return pgx.FailedBatchResults(b, err)
	}
	return results
}

func (w *work) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource,
) (int64, error) {
	if err := w.ready(ctx); err != nil {
		return 0, err
	}
	return w.Tx.CopyFrom(ctx, table, columns, rows)
}

// Begin starts a savepoint. What is queued inside it must not outlive its rollback, so there it is sent at once.
func (w *work) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	return w.Tx.Begin(ctx)
}

var errNotYours = errors.New("the inbox ends the transaction, not its handler")

// Commit refuses: it would commit other events' writes too, and the id's row without the rest.
func (*work) Commit(context.Context) error { return errNotYours }

// Rollback refuses; return an error instead.
func (*work) Rollback(context.Context) error { return errNotYours }

// Queue is tx.Exec for a write whose answer the handler does not need. It is sent with others in one round trip:
// before the next statement that does need an answer, and at the latest before the commit. So a handler still sees what
// it and the handlers before it queued, and an error of the write still rolls the event back; it is only not seen here.
//
// On a transaction that is not the inbox's own (a savepoint, a test's) the write happens at once. Arguments must stay
// as they are until the handler's transaction ends.
func Queue(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	return enqueue(ctx, tx, queued{sql: sql, args: args})
}

// QueueRows is [Queue] for a write that must affect a row: where there is none, the error counts as the handler's.
func QueueRows(ctx context.Context, tx pgx.Tx, none error, sql string, args ...any) error {
	return enqueue(ctx, tx, queued{sql: sql, args: args, none: none})
}

// queued is a statement that waits to be sent.
type queued struct {
	item int // whose handler queued it
	sql  string
	args []any
	none error                // what it means that no row was affected
	read func(pgx.Rows) error // for a question; it must close the rows

	// What a division by zero in it, or a row that is there, means: that the transaction must not go on. Unlike a look at
	// the rows, such a statement needs no answer before the commit is sent: after a failed one the server skips what is
	// behind it.
	refusal error
}

const (
	commit          = `commit`
	divisionByZero  = "22012"
	uniqueViolation = "23505"
)

func enqueue(ctx context.Context, tx pgx.Tx, q queued) error {
	w, own := tx.(*work)
	if !own {
		q.item = noItem
		return sendQueue(ctx, tx, []queued{q})
	}
	q.item = w.item
	w.queue = append(w.queue, q)
	return nil
}

// take reads what the statement came to.
func (q *queued) take(results pgx.BatchResults) (err error) {
	if q.read != nil {
		rows, _ := results.Query()
		err = q.read(rows)
	} else {
		var tag pgconn.CommandTag
		switch tag, err = results.Exec(); {
		case err != nil:
		case q.sql == commit && tag.String() == "ROLLBACK": // PostgreSQL's answer where a statement had failed before
			err = pgx.ErrTxCommitRollback
		case tag.RowsAffected() == 0:
			err = q.none
		}
	}
	switch {
	case err == nil:
		return nil
	case q.sql == commit:
		err = fmt.Errorf("commit: %w", err)
	}
	var pgErr *pgconn.PgError
	if q.refusal != nil && errors.As(err, &pgErr) && (pgErr.Code == divisionByZero || pgErr.Code == uniqueViolation) {
		err = q.refusal
	}
	return &itemError{q.item, err, q.refusal != nil && errors.Is(err, context.DeadlineExceeded)}
}

// itemError says which event of a batch failed.
type itemError struct {
	item int
	err  error

	// The time ended before a guard was answered: it waited for another transaction, or what was sent with it took too
	// long, or the time was over when it was sent.
	unguarded bool
}

func (e *itemError) Error() string { return e.err.Error() }
func (e *itemError) Unwrap() error { return e.err }

const noItem = -1 // the inbox's own statements are no event's

// sendQueue sends the queue in one round trip: after a failed statement the server skips the rest, a commit included.
func sendQueue(ctx context.Context, tx pgx.Tx, queue []queued) (err error) {
	batch := &pgx.Batch{}
	for _, q := range queue {
		batch.Queue(q.sql, q.args...)
	}
	results := tx.SendBatch(ctx, batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	for i := range queue {
		if err := queue[i].take(results); err != nil {
			return err
		}
	}
	return nil
}
