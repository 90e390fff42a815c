package customer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Answer is what a command answered the first time, kept so that a retry gets it again.
type Answer struct {
	Status int
	Body   []byte
}

var (
	errKeyInFlight = errors.New("a request with this idempotency key is under way")
	errKeyReused   = errors.New("this idempotency key belongs to another request")
)

// Two statements, though one could say both: a snapshot that was taken before the lock was granted would not see the
// answer that the lock's last holder has just committed.
const (
	lockKey      = `select pg_try_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`
	selectAnswer = `
select fingerprint, status, body from idempotency_key
where scope = $1 and key = $2 and expires_at > clock_timestamp()`
)

// claimKey makes this transaction the only one that works under the key, or says at once that another does. found
// means that the answer was given before. A hash collision of two keys costs one of them a needless errKeyInFlight.
func claimKey(
	ctx context.Context, tx pgx.Tx, scope, key string, fingerprint []byte,
) (answer Answer, found bool, err error) {
	var locked bool
	var known []byte
	batch := &pgx.Batch{} // one round trip for both
	batch.Queue(lockKey, scope, key).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
	batch.Queue(selectAnswer, scope, key).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&known, &answer.Status, &answer.Body)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return Answer{}, false, fmt.Errorf("claim idempotency key: %w", err)
	}
	switch {
	case !locked:
		return Answer{}, false, errKeyInFlight
	case known == nil:
		return Answer{}, false, nil
	case !bytes.Equal(known, fingerprint):
		return Answer{}, false, errKeyReused
	}
	return answer, true, nil
}

// An expired row may still lie there; it is overwritten.
const upsertAnswer = `
insert into idempotency_key (scope, key, fingerprint, status, body, expires_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6))
on conflict (scope, key) do update set
    fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    created_at = excluded.created_at, expires_at = excluded.expires_at`

func storeAnswer(
	ctx context.Context, tx pgx.Tx, scope, key string, fingerprint []byte, answer Answer, keep time.Duration,
) error {
	_, err := tx.Exec(ctx, upsertAnswer, scope, key, fingerprint, answer.Status, answer.Body, keep.Seconds())
	if err != nil {
		return fmt.Errorf("store idempotent answer: %w", err)
	}
	return nil
}

const deleteExpiredKeys = `
delete from idempotency_key where (scope, key) in (
    select scope, key from idempotency_key where expires_at <= clock_timestamp() limit 1000 for update skip locked)`

// forgetKeys deletes expired answers, a bounded number per statement so that no lock is held for long, until none is
// left.
func (c *Commands) forgetKeys(ctx context.Context) error {
	for {
		tag, err := c.pool.Exec(ctx, deleteExpiredKeys)
		if err != nil {
			return fmt.Errorf("delete expired idempotency keys: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
	}
}
