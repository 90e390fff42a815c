// Package command runs an API's commands: in a transaction, once per idempotency key, and again after a lost race.
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

// ErrOutcomeUnknown reports a commit that failed, such as by a broken connection, and that PostgreSQL does not confirm
// as rolled back. Repeat the command under the same idempotency key or expected version.
var ErrOutcomeUnknown = errors.New("the connection was lost at the commit: the outcome is unknown")

// Transaction is one command's.
type Transaction struct {
	Pool *pgxpool.Pool
	// Timeout bounds it, commit included, unless the caller's deadline is earlier.
	Timeout time.Duration
}

// Run runs fn to its end even if the request is cancelled: a client that disconnects must not decide about a commit.
func (t Transaction) Run(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	return t.run(ctx, &pgx.Batch{}, fn)
}

// run sends the statements of first with the begin, in one round trip, and reads their results before fn runs.
func (t Transaction) run(ctx context.Context, first *pgx.Batch, fn func(context.Context, pgx.Tx) error) error {
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
	begin.QueuedQueries = append(begin.QueuedQueries, first.QueuedQueries...)
	results := conn.SendBatch(ctx, begin)
	tx := results.Tx()
	defer func() { _ = tx.Rollback(ctx) }() // no effect after a commit
	if err := results.Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	switch err := tx.Commit(ctx); {
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("commit: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil
}

// Once answers a command with the stored answer of its key, or with that of do, which it stores together with the
// writes that do queues. A claim without a key stores no answer. A refused command leaves its key free.
//
// Errors: [ErrKeyReused], [ErrKeyInFlight], [ErrOutcomeUnknown], [ErrMetadata], those of do and of its writes.
func (t Transaction) Once(
	ctx context.Context, claim Claim, keep time.Duration,
	do func(ctx context.Context, tx pgx.Tx, writes *pgx.Batch) (Answer, error),
) (answer Answer, err error) {
	first, locked := &pgx.Batch{}, true
	var known []byte // fingerprint of the answered command
	if claim.Key != "" {
		first.Queue(LockKey, claim.Scope, claim.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
		first.Queue(selectAnswer, claim.Scope, claim.Key).Query(func(rows pgx.Rows) error {
			columns := []any{&known, &answer.Status, &answer.Body, &answer.Metadata}
			_, err := pgx.ForEachRow(rows, columns, func() error { return nil })
			return err
		})
	}
	err = t.run(ctx, first, func(ctx context.Context, tx pgx.Tx) (err error) {
		// A known answer counts even if another retry holds the lock. Two keys of one hash cost a needless ErrKeyInFlight.
		switch {
		case known != nil && !bytes.Equal(known, claim.Fingerprint):
			return ErrKeyReused
		case known != nil:
			return nil
		case !locked:
			return ErrKeyInFlight
		}
		writes := &pgx.Batch{}
		if answer, err = do(ctx, tx, writes); err != nil {
			return err
		}
		if claim.Key != "" {
			if m := answer.Metadata; len(m) > MaxMetadataBytes || m != nil && !bytes.HasPrefix(m, []byte("{")) {
				return ErrMetadata
			}
			writes.Queue(upsertAnswer, claim.Scope, claim.Key, claim.Fingerprint,
				answer.Status, answer.Body, keep.Seconds(), answer.Metadata)
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

// Claim names a command. One transaction at a time runs it.
type Claim struct {
	Scope, Key  string // scope separates the keys of different commands
	Fingerprint []byte // of the command
}

// LockKey claims a scope and a key for a transaction: a test that runs it gets [ErrKeyInFlight] for them.
const LockKey = `select pg_try_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`

// A snapshot from before the lock would miss the answer that the lock's last holder committed.
const selectAnswer = `
select fingerprint, status, body, metadata from idempotency_key
where scope = $1 and key = $2 and expires_at > clock_timestamp()`

// It overwrites an expired row.
const upsertAnswer = `
insert into idempotency_key (scope, key, fingerprint, status, body, expires_at, metadata)
values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7)
on conflict (scope, key) do update set
    fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    created_at = excluded.created_at, expires_at = excluded.expires_at, metadata = excluded.metadata`

type Answer struct {
	Status int
	Body   []byte
	// Metadata is a JSON object for operators and retries. Clients do not see it. nil: none.
	Metadata json.RawMessage
}

const MaxMetadataBytes = 4096

// ErrMetadata reports metadata that is too long or not a JSON object. Nothing is stored.
var ErrMetadata = fmt.Errorf("metadata of an answer must be a JSON object of up to %d bytes", MaxMetadataBytes)

var (
	ErrKeyInFlight = errors.New("a request with this idempotency key is under way")
	ErrKeyReused   = errors.New("this idempotency key belongs to another request")
)

// DeleteExpiredAnswers is a statement for [Forget].
const DeleteExpiredAnswers = `
delete from idempotency_key where (scope, key) in (
    select scope, key from idempotency_key where expires_at <= clock_timestamp() limit $1 for update skip locked)`

// The winner has committed: a pause only separates the losers.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// Retry runs a command, transaction included, up to attempts times while it ends with [outbox.ErrVersionConflict]. Do
// not use it for a command whose caller names the version.
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

const (
	forgetPage    = 1000
	forgetTimeout = 30 * time.Second // of a page
)

// Forget repeats each statement, which deletes up to $1 expired rows, until it deletes fewer.
func Forget(ctx context.Context, pool *pgxpool.Pool, statements ...string) error {
	for _, sql := range statements {
		for deleted := int64(forgetPage); deleted == forgetPage; {
			limited, cancel := context.WithTimeout(ctx, forgetTimeout)
			tag, err := pool.Exec(limited, sql, forgetPage)
			cancel()
			if err != nil {
				return fmt.Errorf("delete expired rows: %w", err)
			}
			deleted = tag.RowsAffected()
		}
	}
	return nil
}

// ForgetHourly calls [Forget] now and every hour, until ctx ends.
func ForgetHourly(ctx context.Context, log *slog.Logger, pool *pgxpool.Pool, statements ...string) error {
	for {
		if err := Forget(ctx, pool, statements...); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "expired rows not deleted", "error", err)
		}
		if failure.Sleep(ctx, time.Hour) != nil {
			return nil
		}
	}
}
