package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

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

// Two statements, though one could say both: a snapshot that was taken before the lock was granted would not see the
// answer that the lock's last holder has just committed.
const (
	lockKey      = `select pg_try_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`
	selectAnswer = `
select fingerprint, status, body, metadata from idempotency_key
where scope = $1 and key = $2 and expires_at > clock_timestamp()`
)

// Claim makes a transaction the only one that works under a key, or finds out that another does.
type Claim struct {
	Scope, Key  string // the scope separates the keys of one command from those of others
	Fingerprint []byte // of the command

	locked bool
	known  []byte // fingerprint of the command that was answered under the key
	answer Answer
}

// Queue adds the claim's statements to the first batch of the transaction.
func (c *Claim) Queue(batch *pgx.Batch) {
	batch.Queue(lockKey, c.Scope, c.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&c.locked) })
	batch.Queue(selectAnswer, c.Scope, c.Key).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&c.known, &c.answer.Status, &c.answer.Body, &c.answer.Metadata)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// Given is the answer that was given before, if found. What is known is committed, so it counts also where the lock is
// another retry's: two that come at once both get the answer. A hash collision of two keys costs one of them a needless
// ErrKeyInFlight.
func (c *Claim) Given() (answer Answer, found bool, err error) {
	switch {
	case c.known == nil && !c.locked:
		return Answer{}, false, ErrKeyInFlight
	case c.known == nil:
		return Answer{}, false, nil
	case !bytes.Equal(c.known, c.Fingerprint):
		return Answer{}, false, ErrKeyReused
	}
	return c.answer, true, nil
}

// An expired row may still lie there; it is overwritten.
const upsertAnswer = `
insert into idempotency_key (scope, key, fingerprint, status, body, expires_at, metadata)
values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7)
on conflict (scope, key) do update set
    fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    created_at = excluded.created_at, expires_at = excluded.expires_at, metadata = excluded.metadata`

// Store adds what keeps the answer under the key to a batch of the transaction.
func (c *Claim) Store(batch *pgx.Batch, answer Answer, keep time.Duration) error {
	if m := answer.Metadata; m != nil && (len(m) > MaxMetadataBytes || !isObject(m)) {
		return ErrMetadata
	}
	batch.Queue(upsertAnswer, c.Scope, c.Key, c.Fingerprint, answer.Status, answer.Body, keep.Seconds(), answer.Metadata)
	return nil
}

func isObject(text json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil && object != nil
}

// DeleteExpiredAnswers is a statement for [Forget].
const DeleteExpiredAnswers = `
delete from idempotency_key where (scope, key) in (
    select scope, key from idempotency_key where expires_at <= clock_timestamp() limit 1000 for update skip locked)`
