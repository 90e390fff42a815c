package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/outbox/window"
)

// DB is a pool, a connection or a transaction.
type DB interface {
	window.DB
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

var (
	// ErrNotParked means that the key, or the row, is not parked (any more).
	ErrNotParked = errors.New("outbox: not parked")
	// ErrNotScheduled means that nothing waits under the name (any more).
	ErrNotScheduled = errors.New("outbox: not scheduled")
	// ErrPartitionsUnchanged means that a topic's keys are spread over that many partitions already, or that the topic was
	// never seen.
	ErrPartitionsUnchanged = errors.New("outbox: no other number of partitions is recorded for the topic")
)

// list collects what a statement selects.
func list[T any](ctx context.Context, db window.DB, what, sql string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return found, nil
}

// ParkedKey is a key of which a record could not be published.
type ParkedKey struct {
	Topic     string     `json:"topic"`
	Key       string     `json:"key"`
	Reason    string     `json:"reason"`    // what the publisher said
	Permanent bool       `json:"permanent"` // waits for [Release]; else the leader tries again by itself at RetryAt
	Attempts  int        `json:"attempts"`  // how often its first record was sent, or series of attempts after that
	ParkedAt  time.Time  `json:"parked_at"` // first
	RetryAt   *time.Time `json:"retry_at,omitempty"`
	Held      int64      `json:"held"`     // rows that wait
	Position  int64      `json:"position"` // of the first of them, the one that failed; 0 if none
}

const parkedSQL = `
select k.topic, k.key, k.reason, k.permanent, k.attempts, k.parked_at, k.retry_at, h.held, h.position
from public.outbox_parked k
cross join lateral (select count(*) as held, coalesce(min(position), 0) as position from public.outbox_held h
    where h.topic = k.topic and h.key = k.key) h
order by k.parked_at, k.topic, k.key
limit $1`

// Parked lists parked keys, the longest parked first.
func Parked(ctx context.Context, db window.DB, limit int) ([]ParkedKey, error) {
	return list[ParkedKey](ctx, db, "list parked keys", parkedSQL, limit)
}

// Overview is the status with the keys that are parked.
type Overview struct {
	Status
	WaitingMore bool        `json:"waiting_more"` // there are at least as many as Waiting says
	Parked      []ParkedKey `json:"parked"`       // the longest parked first, at most 1000
}

// ReadOverview reads it like [ReadStatus], at one more moment.
func ReadOverview(ctx context.Context, db window.DB) (Overview, error) {
	status, err := ReadStatus(ctx, db)
	if err != nil {
		return Overview{}, err
	}
	parked, err := Parked(ctx, db, 1000)
	return Overview{status, status.Waiting == MaxWaiting, parked}, err
}

// change runs a statement that changes a row, or none: then what it is about is not there.
func change(ctx context.Context, db DB, what string, missing error, sql string, args ...any) error {
	tag, err := db.Exec(ctx, sql, args...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return missing
	}
	return nil
}

const releaseKeySQL = `
update public.outbox_parked set retry_at = clock_timestamp() where topic = $1 and key = $2`

// Release lets the leader try the key's held rows again, in their order, within about a second, or later while attempts
// for other parked keys fail slowly. If the first one fails again the key is parked again. An unparked key is
// [ErrNotParked].
func Release(ctx context.Context, db DB, topic, key string) error {
	return change(ctx, db, "release key", ErrNotParked, releaseKeySQL, topic, key)
}

// discardSQL locks the key before its row, as the leader does: the other way round each could wait for the other.
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

// Discard gives up one held row of a parked key, the one at the position, and releases the key: for a record that no
// broker will ever take. The event is not published, nor republished; the key's consumers see a gap in its versions.
// The row itself stays in the outbox until its partition is dropped. A row that is not held is [ErrNotParked].
func Discard(ctx context.Context, db DB, topic, key string, position int64) error {
	return change(ctx, db, "discard held row", ErrNotParked, discardSQL, topic, key, position)
}

// ScheduledEvent is an event that is to be added when it is due.
type ScheduledEvent struct {
	Name           string    `json:"name"`
	DueAt          time.Time `json:"due_at"`
	OverdueSeconds float64   `json:"overdue_seconds"` // how long it has been due, by the database's clock; 0: it is not
	Type           string    `json:"type"`
	Topic          string    `json:"topic"`
	Key            string    `json:"key"`
	Bytes          int       `json:"bytes"` // of the payload
	ScheduledAt    time.Time `json:"scheduled_at"`
}

const scheduledColumns = `name, due_at, greatest(extract(epoch from clock_timestamp() - due_at), 0)::float8, event_type,
    topic, key, length(payload), scheduled_at`

const scheduledSQL = `select ` + scheduledColumns + `
from public.outbox_scheduled
where ($1 = '' or topic = $1) and ($2 = '' or key = $2)
order by due_at, name
limit $3`

// Scheduled lists scheduled events of a topic and a key, empty for any, in the order in which they are due. With a
// condition it may read all of them.
func Scheduled(ctx context.Context, db window.DB, topic, key string, limit int) ([]ScheduledEvent, error) {
	return list[ScheduledEvent](ctx, db, "list scheduled events", scheduledSQL, topic, key, limit)
}

const cancelScheduledSQL = `
delete from public.outbox_scheduled where name = $1
returning ` + scheduledColumns

// CancelScheduled takes a scheduled event back in the caller's transaction and returns it. If it is being added at this
// moment, the call waits for the end of that; one that has been added is [ErrNotScheduled].
func CancelScheduled(ctx context.Context, tx pgx.Tx, name string) (ScheduledEvent, error) {
	cancelled, err := list[ScheduledEvent](ctx, tx, "cancel scheduled event", cancelScheduledSQL, name)
	if err != nil {
		return ScheduledEvent{}, err
	}
	if len(cancelled) == 0 {
		return ScheduledEvent{}, ErrNotScheduled
	}
	return cancelled[0], nil
}

const topicsSQL = `select coalesce(jsonb_object_agg(topic, partitions), '{}') from public.outbox_topic`

// TopicPartitions is over how many partitions the keys of each topic are spread, as it was first seen or last
// confirmed.
func TopicPartitions(ctx context.Context, db window.DB) (recorded map[string]int32, err error) {
	if err := db.QueryRow(ctx, topicsSQL).Scan(&recorded); err != nil {
		return nil, fmt.Errorf("read topics: %w", err)
	}
	return recorded, nil
}

const confirmPartitionsSQL = `
update public.outbox_topic t set partitions = $2
from (select topic, partitions from public.outbox_topic where topic = $1 for update) was
where t.topic = was.topic and was.partitions <> $2
returning was.partitions`

// ConfirmPartitions makes the relay spread the topic's keys over another number of partitions from now on, and go on
// if it waits for that. It returns the number until now.
//
// Keys move to other partitions by it. A consumer that has not handled what lies in the old ones may see a key's later
// event first: have every consumer group of the topic at its end before, which the relay's waiting makes possible.
// Versioned consumers that do not allow gaps keep the order even so.
func ConfirmPartitions(ctx context.Context, db window.DB, topic string, partitions int32) (before int32, err error) {
	err = db.QueryRow(ctx, confirmPartitionsSQL, topic, partitions).Scan(&before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, ErrPartitionsUnchanged
	case err != nil:
		return 0, fmt.Errorf("confirm partitions: %w", err)
	}
	return before, nil
}
