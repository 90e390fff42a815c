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

// Run runs fn to its end even if the request is cancelled: a client that hangs up in the middle must not decide whether
// a commit goes through. The request's deadline holds, though: a body that took most of it leaves the rest, since a
// commit after it would have no caller to answer to.
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

// Once answers a command under its key: with what was answered before, else with what do makes. What do queues and the
// answer, which is kept for retries, are stored in one transaction, all or nothing. A claim without a key looks nothing
// up and keeps nothing: each call is a command of its own.
//
// It takes three round trips, each of which costs the database as much as a statement: begin with claim and t.First;
// the writes; commit. do sees what t.First has read, queues what it writes, and uses tx where it needs an answer. A
// command that is refused leaves its key free.
//
// Errors: [ErrKeyReused], [ErrKeyInFlight], [ErrOutcomeUnknown], [ErrMetadata], those of do and of its writes.
func (t Transaction) Once(
	ctx context.Context, claim Claim, keep time.Duration,
	do func(ctx context.Context, tx pgx.Tx, writes *pgx.Batch) (Answer, error),
) (answer Answer, err error) {
	keyed := claim.Key != ""
	if keyed {
		begin := &pgx.Batch{}
		claim.Queue(begin)
		if t.First != nil {
			begin.QueuedQueries = append(begin.QueuedQueries, t.First.QueuedQueries...)
		}
		t.First = begin
	}
	err = t.Run(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if keyed {
			given, found, err := claim.Given()
			if err != nil || found {
				answer = given
				return err
			}
		}
		writes := &pgx.Batch{}
		if answer, err = do(ctx, tx, writes); err != nil {
			return err
		}
		if keyed {
			if err := claim.Store(writes, answer, keep); err != nil {
				return err
			}
		}
		if writes.Len() == 0 {
			return nil
		}
		if err := tx.SendBatch(ctx, writes).Close(); err != nil {
			return fmt.Errorf("store command: %w", err)
		}
		return nil
	})
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}
