package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/failure"
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

const commitSQL = `commit`

// commit sends what is queued and commits. It is one round trip unless a write must affect a row.
func (w *work) commit(ctx context.Context) error {
	for _, q := range w.queue {
		if q.none != nil {
			w.flush(ctx)
			break
		}
	}
	if w.err != nil {
		return w.err
	}
	return w.send(ctx, true)
}

// committed finds the commit that was none: PostgreSQL answers it with ROLLBACK where a statement had failed before.
func committed(tag pgconn.CommandTag, err error) error {
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if tag.String() == "ROLLBACK" {
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	}
	return nil
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

// ready begins and sends what is queued, so that the next statement sees it.
func (w *work) ready(ctx context.Context) (err error) {
	if w.Tx == nil {
		if w.Tx, err = w.conn.BeginTx(ctx, readCommitted); err != nil {
			w.Tx = nil
			return fmt.Errorf("begin: %w", err)
		}
	}
	w.flush(ctx)
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

func (w *work) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if w.Tx == nil {
		return w.begin(ctx, b)
	}
	if err := w.ready(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return w.Tx.SendBatch(ctx, b)
}

// begin sends the first batch with a begin before it.
func (w *work) begin(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
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
