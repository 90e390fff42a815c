package lease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const insertIntent = `insert into lease (handler, event_id) values ($1, $2)`

// Intent is the statement that puts the effect of an event on the list: run it in the transaction that records the
// event, so that there is neither an effect of a rolled back event nor an event without its effect. It fails on the
// second intent of a handler for the same event.
func Intent(handler, eventID string) (sql string, args []any) {
	return insertIntent, []any{handler, eventID}
}

// Add runs [Intent].
func Add(ctx context.Context, tx pgx.Tx, handler, eventID string) error {
	if _, err := tx.Exec(ctx, insertIntent, handler, eventID); err != nil {
		return fmt.Errorf("insert intent: %w", err)
	}
	return nil
}
