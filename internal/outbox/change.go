package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/fault"
)

// change runs one update of the cursor row, which also extends the lease. The statement's first parameters are the
// row's name, the epoch and the generation.
func (r *reader) change(ctx context.Context, also func(pgx.Tx) error, sql string, args ...any) error {
	return r.changeReturning(ctx, also, nil, sql, args...)
}

func (r *reader) changeReturning(
	ctx context.Context, also func(pgx.Tx) error, into *uint64, sql string, args ...any,
) error {
	asked := time.Now()
	args = append([]any{cursorName, r.term.epoch, r.generation}, args...)
	update := func(q querier) error {
		tag, err := execReturning(ctx, q, into, sql, args)
		if err == nil && tag.RowsAffected() != 1 {
			return r.whyNot(ctx, q)
		}
		return err
	}
	var err error
	if also == nil {
		err = update(r.conn)
	} else {
		// The cursor first: its row lock keeps a successor out until what follows is committed too.
		err = pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
			if err := update(tx); err != nil {
				return err
			}
			err := also(tx)
			fault.Here("relay.change.in_tx")
			return err
		})
	}
	if err != nil {
		return err
	}
	r.generation++
	r.term.extended(asked)
	return nil
}

// querier is a connection or a transaction on it.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// execReturning is Exec for a statement that may return one number.
func execReturning(ctx context.Context, q querier, into *uint64, sql string, args []any) (pgconn.CommandTag, error) {
	if into == nil {
		return q.Exec(ctx, sql, args...)
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	if rows.Next() {
		if err := rows.Scan(into); err != nil {
			rows.Close()
			return pgconn.CommandTag{}, err
		}
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

const epochSQL = `select epoch from public.outbox_cursor where name = $1`

// whyNot says why an update of the cursor found no row.
func (r *reader) whyNot(ctx context.Context, q querier) error {
	var epoch int64
	if err := q.QueryRow(ctx, epochSQL, cursorName).Scan(&epoch); err != nil {
		return fmt.Errorf("read epoch: %w", err)
	}
	if epoch != r.term.epoch {
		return errDeposed
	}
	return errDiverged
}
