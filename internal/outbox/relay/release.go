package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotParked means that the key, or the row, is not parked (any more).
var ErrNotParked = errors.New("outbox: not parked")

// ParkedKey is a key of which a record could not be published.
type ParkedKey struct {
	Topic     string    `json:"topic"`
	Key       string    `json:"key"`
	Reason    string    `json:"reason"`
	Permanent bool      `json:"permanent"` // the publisher refused the record as it is
	Attempts  int       `json:"attempts"`  // of its first record, or series of attempts after that
	ParkedAt  time.Time `json:"parked_at"` // first
	RetryAt   time.Time `json:"retry_at"`
	Held      int64     `json:"held"`
	Position  int64     `json:"position"` // of the first held row; 0 if none
}

const parkedSQL = `
select k.topic, k.key, k.reason, k.permanent, k.attempts, k.parked_at, k.retry_at, h.held, h.position
from public.outbox_parked k
cross join lateral (select count(*) as held, coalesce(min(position), 0) as position from public.outbox_held h
    where h.topic = k.topic and h.key = k.key) h
order by k.parked_at, k.topic, k.key
limit $1`

// Parked lists parked keys, the longest parked first.
func Parked(ctx context.Context, db DB, limit int) ([]ParkedKey, error) {
	rows, _ := db.Query(ctx, parkedSQL, limit)
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ParkedKey])
	if err != nil {
		return nil, fmt.Errorf("list parked keys: %w", err)
	}
	return keys, nil
}

// Overview is the status with the parked keys.
type Overview struct {
	Status
	WaitingMore bool        `json:"waiting_more"` // at least Waiting events wait
	Parked      []ParkedKey `json:"parked"`       // the longest parked first, at most 1000
}

// ReadOverview reads like [ReadStatus].
func ReadOverview(ctx context.Context, db DB) (Overview, error) {
	status, err := ReadStatus(ctx, db)
	if err != nil {
		return Overview{}, err
	}
	parked, err := Parked(ctx, db, 1000)
	return Overview{status, status.Waiting == MaxWaiting, parked}, err
}

const releaseKeySQL = `
update public.outbox_parked set retry_at = clock_timestamp() where topic = $1 and key = $2`

// Release lets the leader try the key's held rows again, usually within a second. An unparked key is [ErrNotParked].
func Release(ctx context.Context, db DB, topic, key string) error {
	return changeRow(ctx, db, "release key", ErrNotParked, releaseKeySQL, topic, key)
}

// discardSQL locks the key before its row, as the leader does, to avoid a deadlock.
const discardSQL = `
with locked as (
    select topic, key from public.outbox_parked where topic = $1 and key = $2 for update
), gone as (
    delete from public.outbox_held h using locked k where h.topic = k.topic and h.key = k.key and h.position = $3
    returning h.topic, h.key, h.position
), noted as (
    insert into public.outbox_discarded (position) select position from gone
)
update public.outbox_parked k set retry_at = clock_timestamp()
from gone where k.topic = gone.topic and k.key = gone.key`

// Discard gives up the held row of a parked key at the position, and releases the key. Consumers see a gap in its
// versions. A row that is not held is [ErrNotParked].
func Discard(ctx context.Context, db DB, topic, key string, position int64) error {
	return changeRow(ctx, db, "discard held row", ErrNotParked, discardSQL, topic, key, position)
}

// changeRow returns the error none if the statement changes no row.
func changeRow(ctx context.Context, db DB, what string, none error, sql string, args ...any) error {
	tag, err := db.Exec(ctx, sql, args...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return none
	}
	return nil
}
