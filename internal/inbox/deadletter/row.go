package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/failure"
)

const listed = `id, consumer, event_id, event_type, version, octet_length(payload), consumer_group, topic, partition,
    record_offset, record_time, edited_by, edited_at, class, code, attempts, first_failed_at, failed_at, state, holds,
    remembered, replays, outcome, settled_at, `

const (
	// Columns are the columns of [Scan].
	Columns = listed + `key, error, payload, edited_payload, headers, edited_headers`

	// briefColumns are [Columns] of a list.
	briefColumns = listed + `key_start, left(error, 1000), null::bytea, null::bytea, null::jsonb, null::jsonb`
)

// Scan reads a row of [Columns].
func Scan(row pgx.CollectableRow) (l Letter, err error) {
	orZero := func(at *time.Time) *zeronull.Timestamptz { return (*zeronull.Timestamptz)(at) }
	err = row.Scan(
		&l.ID, &l.Consumer, &l.EventID, &l.Type, &l.Version, &l.Bytes, &l.Group, &l.Topic, &l.Partition, &l.Offset,
		orZero(&l.RecordTime), &l.EditedBy, orZero(&l.EditedAt), &l.Class, &l.Code, &l.Attempts, &l.FirstFailedAt,
		&l.FailedAt, &l.State, &l.Holds, &l.Remembered, &l.Replays, &l.Outcome, orZero(&l.SettledAt), (*[]byte)(&l.Key),
		&l.Error, &l.Payload, &l.EditedPayload, (*headerList)(&l.Headers), (*headerList)(&l.EditedHeaders),
	)
	for _, at := range []*time.Time{&l.RecordTime, &l.EditedAt, &l.FirstFailedAt, &l.FailedAt, &l.SettledAt} {
		*at = at.UTC()
	}
	return l, err
}

// orNull returns null for a time that PostgreSQL or JSON cannot hold.
func orNull(t time.Time) *time.Time {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// notNull returns empty bytes for null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// It conflicts with the same record, which comes again after a crash before the offset.
const insertLetter = `
insert into public.dead_letter (consumer, event_id, event_type, version, key, headers, payload, consumer_group, topic,
    partition, record_offset, record_time, class, code, error, attempts, first_failed_at, holds, remembered)
values ($1, $2, $3, $4, $5, coalesce($6::jsonb, '[]'), $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict (consumer, event_id, remembered, sha256(payload)) do nothing`

// Insert stores a dead letter and reports whether it is new.
func Insert(ctx context.Context, tx pgx.Tx, l Letter) (isNew bool, err error) {
	tag, err := tx.Exec(ctx, insertLetter, l.Consumer, l.EventID, failure.Text(l.Type), l.Version, notNull(l.Key),
		headerList(l.Headers), notNull(l.Payload), l.Group, l.Topic, l.Partition, l.Offset, orNull(l.RecordTime),
		l.Class, l.Code, failure.Brief(l.Error), l.Attempts, l.FirstFailedAt, l.Holds, l.Remembered)
	if err != nil {
		return false, fmt.Errorf("insert dead letter: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// ErrNotWaiting means that a dead letter is settled, was edited in between, or does not exist.
var ErrNotWaiting = errors.New("the dead letter is not waiting")

const lockWaiting = `select ` + Columns + ` from public.dead_letter where id = $1 and state = 'waiting' for update`

// Every transaction locks a key before its dead letters.
const lockKeys = `
select from public.inbox_key k
join (select distinct d.consumer, convert_from(d.key_start, 'UTF8') as key
    from public.dead_letter d where d.id = any($1) and d.holds) as held using (consumer, key)
order by k.consumer, k.key for update of k`

// LockKeys locks the keys that the dead letters hold.
func LockKeys(ctx context.Context, tx pgx.Tx, ids ...int64) error {
	if _, err := tx.Exec(ctx, lockKeys, ids); err != nil {
		return fmt.Errorf("lock keys of dead letters: %w", err)
	}
	return nil
}

// Lock locks a waiting dead letter's key, then the dead letter, and returns it, or [ErrNotWaiting].
func Lock(ctx context.Context, tx pgx.Tx, id int64) (Letter, error) {
	if err := LockKeys(ctx, tx, id); err != nil {
		return Letter{}, err
	}
	rows, _ := tx.Query(ctx, lockWaiting, id)
	return readOne(rows, ErrNotWaiting)
}

const nextWaiting = `
select ` + Columns + ` from public.dead_letter
where consumer = $1 and state = 'waiting' and (key_start, version, id) > ($2, $3, $4) and %s
order by key_start, version, id limit 1`

// Next returns the consumer's next selected dead letter, by key, version and id, or [ErrNotWaiting].
func Next(ctx context.Context, db audit.Querier, behind Letter, f Filter) (Letter, error) {
	condition, args := f.Where(5)
	position := []any{behind.Consumer, KeyStart(notNull(behind.Key)), behind.Version, behind.ID}
	rows, _ := db.Query(ctx, fmt.Sprintf(nextWaiting, condition), append(position, args...)...)
	return readOne(rows, ErrNotWaiting)
}

func readOne(rows pgx.Rows, none error) (Letter, error) {
	l, err := pgx.CollectOneRow(rows, Scan)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l, none
	case err != nil:
		return l, fmt.Errorf("read dead letter: %w", err)
	}
	return l, nil
}

// A discarded event counts as applied if it is the key's next.
const releaseKey = `
update public.inbox_key k
set parked_from = (select min(d.version) from public.dead_letter d
        where d.consumer = $1 and d.key_start = $2 and d.state = 'waiting' and d.holds),
    version = case when $4 and k.version + 1 = $5 then $5 else k.version end
where k.consumer = $1 and k.key = $3`

// ReleaseKeys updates the keys of settled dead letters, in version order. With passed, versions of events that were not
// applied count.
func ReleaseKeys(ctx context.Context, tx pgx.Tx, passed bool, letters ...Letter) error {
	batch := &pgx.Batch{}
	for _, l := range letters {
		if l.Holds {
			batch.Queue(releaseKey, l.Consumer, KeyStart(l.Key), string(l.Key), passed, l.Version)
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("release keys: %w", err)
	}
	return nil
}

// headerList is an array of [name, base64 of the value] in the table: headers have an order, and names may repeat.
type headerList []Header

// MarshalJSON implements [json.Marshaler].
func (hs headerList) MarshalJSON() ([]byte, error) {
	list := make([][2]any, len(hs))
	for i, h := range hs {
		list[i] = [2]any{failure.Text(h.Name), notNull(h.Value)}
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (hs *headerList) UnmarshalJSON(encoded []byte) error {
	var list [][2]json.RawMessage // rows of the first edition may have a third element
	err := json.Unmarshal(encoded, &list)
	*hs = make(headerList, len(list))
	for i, header := range list {
		h := &(*hs)[i]
		err = errors.Join(err, json.Unmarshal(header[0], &h.Name), json.Unmarshal(header[1], &h.Value))
		h.Value = notNull(h.Value)
	}
	return err
}
