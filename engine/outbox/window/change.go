package window

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
)

// guardSQL ends every change of the cursor: it is made in the epoch that leads and on the state that is known, and it
// extends the lease.
const guardSQL = `generation = generation + 1, lease_until = clock_timestamp() + $4 * interval '1 microsecond'
where name = $1 and epoch = $2 and generation = $3
returning pg_current_xact_id()`

// change runs an update that ends in guardSQL, with parameters from $5 on, and returns its transaction's id.
func (r *Reader) change(
	ctx context.Context, also func(pgx.Tx) error, sql string, args ...any,
) (xid uint64, err error) {
	sent := time.Now()
	args = append([]any{CursorName, r.term.Epoch, r.generation, r.term.Lease.Microseconds()}, args...)
	update := func(q rowQuerier) error {
		err := q.QueryRow(ctx, sql, args...).Scan(&xid)
		if errors.Is(err, pgx.ErrNoRows) {
			return r.whyNot(ctx, q)
		}
		return err
	}
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
		return 0, err
	}
	r.generation++
	r.term.Extended(sent)
	return xid, nil
}

// rowQuerier is a connection or a transaction on it.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const epochSQL = `select epoch from public.outbox_cursor where name = $1`

// whyNot says why an update of the cursor found no row.
func (r *Reader) whyNot(ctx context.Context, q rowQuerier) error {
	var epoch int64
	if err := q.QueryRow(ctx, epochSQL, CursorName).Scan(&epoch); err != nil {
		return fmt.Errorf("read epoch: %w", err)
	}
	if epoch != r.term.Epoch {
		return ErrDeposed
	}
	return ErrDiverged
}
