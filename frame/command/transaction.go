package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrOutcomeUnknown is what a caller gets when the connection was lost around the commit: the command may have happened
// or not. Repeating it is safe, under the same idempotency key or the same expected version.
var ErrOutcomeUnknown = errors.New("the connection was lost at the commit: the outcome is unknown")

// Transaction is one command's.
type Transaction struct {
	Pool *pgxpool.Pool
	// Timeout bounds it from its first statement to its commit. An earlier deadline of its caller does too.
	Timeout time.Duration
	// First are statements that travel with its begin: they have been answered when the command runs. Optional.
	First *pgx.Batch
}

// Run runs fn, whatever becomes of the request: a client that hangs up in the middle must not decide whether a commit
// goes through. The request's deadline holds, though: a body that took most of it leaves the rest, since a commit after
// it would have no caller to answer to.
func (t Transaction) Run(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	until := time.Now().Add(t.Timeout)
	if asked, has := ctx.Deadline(); has && asked.Before(until) {
		until = asked
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	conn, err := t.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()
	begin := &pgx.Batch{}
	begin.BeginTx(pgx.TxOptions{})
	if t.First != nil {
		begin.QueuedQueries = append(begin.QueuedQueries, t.First.QueuedQueries...)
	}
	results := conn.SendBatch(ctx, begin)
	tx := results.Tx()
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
	if err := results.Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil
}
