package inbox

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Queue is tx.Exec for a write whose answer the handler does not need. It is sent with others in one round trip:
// before the next statement that does need an answer, and at the latest before the commit. So a handler still sees what
// it and the handlers before it queued, and an error of the write still rolls the event back; it is only not seen here.
//
// On a transaction that is not the inbox's own (a savepoint, a test's) the write happens at once. Arguments must stay
// as they are until the handler's transaction ends.
func Queue(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	return QueueRows(ctx, tx, nil, sql, args...)
}

// QueueRows is [Queue] for a write that must affect a row: where there is none, the error counts as the handler's.
func QueueRows(ctx context.Context, tx pgx.Tx, none error, sql string, args ...any) error {
	q := queued{item: noItem, sql: sql, args: args, none: none}
	if w, ok := tx.(*work); ok {
		q.item = w.item
		w.queue = append(w.queue, q)
		return nil
	}
	tag, err := tx.Exec(ctx, sql, args...)
	return q.written(tag, err)
}

func (q queued) written(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return q.none
	}
	return err
}

type queued struct {
	item    int // whose handler queued it
	sql     string
	args    []any
	none    error                // what it means that no row was affected
	read    func(pgx.Rows) error // for a question; it must close the rows
	refusal error                // what a division by zero in it, or a row that is there, means
}

const (
	divisionByZero  = "22012"
	uniqueViolation = "23505"
)

// queueGuard is [Queue] for a statement that divides by zero, or inserts a row that is there, where the transaction
// must not go on. Unlike a look at the rows, that needs no answer before the commit is sent: after a failed statement
// the server skips what is behind it.
func queueGuard(ctx context.Context, tx pgx.Tx, refusal error, sql string, args ...any) error {
	q := queued{item: noItem, sql: sql, args: args, refusal: refusal}
	if w, ok := tx.(*work); ok {
		w.queue = append(w.queue, q)
		return nil
	}
	_, err := tx.Exec(ctx, sql, args...)
	return q.meaning(err)
}

// result reads what the statement came to.
func (q queued) result(results pgx.BatchResults) error {
	if q.read != nil {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		return q.read(rows)
	}
	tag, err := results.Exec()
	return q.written(tag, err)
}

// meaning is the refusal where the statement refused, else the error as it is, marked where the time ended with it.
func (q queued) meaning(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case q.refusal == nil:
		return err
	case errors.As(err, &pgErr) && (pgErr.Code == divisionByZero || pgErr.Code == uniqueViolation):
		return q.refusal
	case errors.Is(err, context.DeadlineExceeded):
		return &guardError{err}
	}
	return err
}

// guardError says that the time ended before a guard was answered: it waited for another transaction, or what was sent
// with it took too long, or the time was over when it was sent.
type guardError struct{ err error }

func (e *guardError) Error() string { return e.err.Error() }
func (e *guardError) Unwrap() error { return e.err }

// itemError says which event of a batch failed.
type itemError struct {
	item int
	err  error
}

func (e *itemError) Error() string { return e.err.Error() }
func (e *itemError) Unwrap() error { return e.err }

const noItem = -1 // the inbox's own statements are no event's

// flush sends what is queued. A failure is kept, because what follows may not look at it: the transaction is broken
// then, or the check of its rows failed, and the engine commits neither.
func (w *work) flush(ctx context.Context) {
	if len(w.queue) > 0 && w.err == nil {
		w.err = w.send(ctx, false)
	}
}

// send sends the queue, and behind it the commit if asked to: after a failed statement the server skips the rest.
func (w *work) send(ctx context.Context, commit bool) (err error) {
	queue := w.queue
	w.queue = nil
	batch := &pgx.Batch{}
	for _, q := range queue {
		batch.Queue(q.sql, q.args...)
	}
	if commit {
		batch.Queue(commitSQL)
	}
	results := w.SendBatch(ctx, batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	for _, q := range queue {
		if err := q.result(results); err != nil {
			return &itemError{q.item, q.meaning(err)}
		}
	}
	if commit {
		return committed(results.Exec())
	}
	return nil
}
