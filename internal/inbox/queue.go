package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx sends queued writes before the next statement that needs an answer, or with the commit.
type handlerTx struct {
	pgx.Tx
	consumer   string
	eventID    string // of the current handler's event
	queue      pgx.Batch
	mustChange bool  // a queued write must change a row
	err        error // of a queued write
}

// Queue is tx.Exec for a write whose result the handler does not need: it saves a round trip. Its error fails the
// event. In another transaction the write runs immediately.
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

// PutMetadata stores the handler's data in the event's inbox row, where operators see it. A second call replaces the
// first. Its errors are permanent.
func PutMetadata(ctx context.Context, tx pgx.Tx, metadata map[string]any) error {
	encoded, err := json.Marshal(metadata)
	handler, is := tx.(*handlerTx)
	if err != nil || !is || handler.eventID == "" || len(encoded) > MaxMetadataBytes {
		return Permanent(errors.Join(err, errMetadata))
	}
	id := handler.eventID
	return Queue(ctx, tx, updateMetadata, handler.consumer, id, idTime(id), string(encoded))
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
