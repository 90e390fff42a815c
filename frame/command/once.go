package command

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Once answers a command under its key: with what was answered before, else with what do makes. What do queues and the
// answer, which is kept for retries, are stored in one transaction, all or nothing. A claim without a key looks nothing
// up and keeps nothing: each call is a command of its own.
//
// It takes three round trips, each of which costs the database as much as a statement: begin with claim and t.First;
// the writes; commit. do sees what t.First has read. A command that is refused leaves its key free.
//
// Errors: [ErrKeyReused], [ErrKeyInFlight], [ErrOutcomeUnknown], those of do and of its writes.
func (t Transaction) Once(
	ctx context.Context, claim Claim, keep time.Duration,
	do func(ctx context.Context, writes *pgx.Batch) (Answer, error),
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
		if answer, err = do(ctx, writes); err != nil {
			return err
		}
		if keyed {
			claim.Store(writes, answer, keep)
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
