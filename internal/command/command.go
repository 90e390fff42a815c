// Package command runs the commands of an API: in a transaction of their own ([Transaction]), with answers kept for
// retries under an idempotency key ([Transaction.Once]), with another attempt after a lost race ([Retry]), and with
// errors as problems for the client ([Problem]).
//
// The answers are in the table idempotency_key (migrations/customer has it), in the transaction of what they tell of.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
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
	keyed, locked := claim.Key != "", false
	var known []byte // fingerprint of the command that was answered under the key
	if keyed {
		begin := &pgx.Batch{}
		begin.Queue(lockKey, claim.Scope, claim.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
		begin.Queue(selectAnswer, claim.Scope, claim.Key).Query(func(rows pgx.Rows) error {
			given := []any{&known, &answer.Status, &answer.Body, &answer.Metadata}
			_, err := pgx.ForEachRow(rows, given, func() error { return nil })
			return err
		})
		if t.First != nil {
			begin.QueuedQueries = append(begin.QueuedQueries, t.First.QueuedQueries...)
		}
		t.First = begin
	}
	err = t.Run(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		// What is known is committed, so it counts also where the lock is another retry's: two that come at once both get
		// the answer. A hash collision of two keys costs one of them a needless ErrKeyInFlight.
		switch {
		case known != nil && !bytes.Equal(known, claim.Fingerprint):
			return ErrKeyReused
		case known != nil:
			return nil
		case keyed && !locked:
			return ErrKeyInFlight
		}
		writes := &pgx.Batch{}
		if answer, err = do(ctx, tx, writes); err != nil {
			return err
		}
		if m := answer.Metadata; keyed && m != nil && (len(m) > MaxMetadataBytes || !isObject(m)) {
			return ErrMetadata
		}
		if keyed {
			writes.Queue(upsertAnswer, claim.Scope, claim.Key, claim.Fingerprint,
				answer.Status, answer.Body, keep.Seconds(), answer.Metadata)
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

// Claim names a command: one transaction at a time works on it, and its retries find its answer.
type Claim struct {
	Scope, Key  string // the scope separates the keys of one command from those of others
	Fingerprint []byte // of the command
}

// Two statements, though one could say both: a snapshot that was taken before the lock was granted would not see the
// answer that the lock's last holder has just committed.
const (
	lockKey      = `select pg_try_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`
	selectAnswer = `
select fingerprint, status, body, metadata from idempotency_key
where scope = $1 and key = $2 and expires_at > clock_timestamp()`
)

// An expired row may still lie there; it is overwritten.
const upsertAnswer = `
insert into idempotency_key (scope, key, fingerprint, status, body, expires_at, metadata)
values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7)
on conflict (scope, key) do update set
    fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    created_at = excluded.created_at, expires_at = excluded.expires_at, metadata = excluded.metadata`

func isObject(text json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil && object != nil
}

// Answer is what a command answered the first time, kept so that a retry gets it again.
type Answer struct {
	Status int
	Body   []byte
	// Metadata is a JSON object beside the answer, up to MaxMetadataBytes, for a retry and for operators who read the
	// table: it must hold no personal data. nil: nothing. A client does not see it.
	Metadata json.RawMessage
}

// MaxMetadataBytes is the longest metadata of an answer.
const MaxMetadataBytes = 4096

// ErrMetadata is metadata that is no JSON object or too long: a mistake of the command, of which nothing is stored.
var ErrMetadata = fmt.Errorf("metadata of an answer is no JSON object of up to %d bytes", MaxMetadataBytes)

// What is wrong with a key.
var (
	ErrKeyInFlight = errors.New("a request with this idempotency key is under way")
	ErrKeyReused   = errors.New("this idempotency key belongs to another request")
)

// DeleteExpiredAnswers is a statement for [Forget].
const DeleteExpiredAnswers = `
delete from idempotency_key where (scope, key) in (
    select scope, key from idempotency_key where expires_at <= clock_timestamp() limit 1000 for update skip locked)`

// The pauses between the attempts of [Retry]. The race was lost to a transaction that has committed, so the next
// attempt may come at once; the pause parts those that lost together.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// Retry runs a command that holds no lock while it decides, and runs it again when it lost the race for its
// aggregate's next version ([outbox.ErrVersionConflict]), at most attempts times in all. do is the whole command: it
// begins a transaction of its own, reads the aggregate and decides anew, since what it decided before rests on an old
// state.
//
// It is for commands whose caller has not seen a version. One that names the version that its caller has seen must not
// be repeated on another one: give it one attempt.
//
// Any other error ends it, and so does ctx. After the last attempt the error is that attempt's, which [Problem] answers
// with 409; nothing of any attempt is stored.
func Retry[T any](ctx context.Context, attempts int, do func(context.Context) (T, error)) (T, error) {
	pauses := failure.Backoff{Min: firstPause, Max: longestPause}
	for {
		result, err := do(ctx)
		if attempts--; attempts < 1 || !errors.Is(err, outbox.ErrVersionConflict) ||
			failure.Sleep(ctx, pauses.Next()) != nil {
			return result, err
		}
	}
}

// Forget deletes rows that have expired. Each statement deletes a bounded number of them, so that no lock is held for
// long, and is repeated until none is left.
func Forget(ctx context.Context, pool *pgxpool.Pool, statements ...string) error {
	var problems []error
	for _, sql := range statements {
		tag, err := pool.Exec(ctx, sql)
		for err == nil && tag.RowsAffected() > 0 {
			tag, err = pool.Exec(ctx, sql)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("delete expired rows: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Hourly forgets now and every hour, until ctx ends.
func Hourly(ctx context.Context, log *slog.Logger, forget func(context.Context) error) error {
	for {
		if err := forget(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "expired rows not deleted", "error", err)
		}
		if failure.Sleep(ctx, time.Hour) != nil {
			return nil
		}
	}
}
