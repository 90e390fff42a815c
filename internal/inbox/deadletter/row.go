package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	_ "example.com/twinbox/internal/failure/pgerrors" // what the database's errors mean
)

// Columns is what [Scan] reads, in its order.
const Columns = `id, consumer, event_id, event_type, version, case when not key_null then key end as key, headers,
    case when not payload_null then payload end as payload, consumer_group, topic, partition, record_offset,
    record_time, edited_headers, edited_payload, edited_by, edited_at, class, code, error, attempts, first_failed_at,
    failed_at, state, holds, remembered, replays, outcome, settled_at, coalesce(record_ms, 0) as record_ms`

// Scan reads a row of [Columns].
func Scan(row pgx.CollectableRow) (l Letter, err error) {
	var headers, editedHeaders, editedPayload []byte
	var editedBy string
	var recordTime, editedAt, settledAt *time.Time
	err = row.Scan(&l.ID, &l.Consumer, &l.EventID, &l.EventType, &l.Version, &l.Key, &headers, &l.Payload, &l.Group,
		&l.Topic, &l.Partition, &l.Offset, &recordTime, &editedHeaders, &editedPayload, &editedBy, &editedAt, &l.Class,
		&l.Code, &l.Error, &l.Attempts, &l.FirstFailedAt, &l.FailedAt, &l.State, &l.Holds, &l.Remembered, &l.Replays,
		&l.Outcome, &settledAt, &l.RecordMS)
	if err != nil {
		return l, err
	}
	l.RecordTime, l.SettledAt = orZero(recordTime), orZero(settledAt)
	l.FirstFailedAt, l.FailedAt = l.FirstFailedAt.UTC(), l.FailedAt.UTC()
	if l.Headers, err = decodeHeaders(headers); err != nil {
		return l, err
	}
	if editedAt != nil {
		l.Edited = &Edited{Payload: editedPayload, By: editedBy, At: editedAt.UTC()}
		l.Edited.Headers, err = decodeHeaders(editedHeaders)
	}
	return l, err
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// OrNull keeps a time that a calendar has. A record's is 64 bits of milliseconds, which its producer chose: PostgreSQL
// refuses what is too far, and JSON has four digits for a year.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// Text makes foreign bytes storable as text: PostgreSQL refuses NUL and invalid UTF-8, and a dead letter must not fail
// on the very thing that made the record die.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// The second dead letter of one event would be the same record again, after a crash between commit and offset.
const insertLetter = `
insert into public.dead_letter (consumer, event_id, event_type, version, key, headers, payload, consumer_group, topic,
    partition, record_offset, record_time, class, code, error, attempts, first_failed_at, holds, remembered, key_null,
    payload_null, record_ms)
values ($1, $2, $3, $4, coalesce($5::bytea, ''), $6, coalesce($7::bytea, ''), $8, $9, $10, $11, $12, $13, $14, $15, $16,
    $17, $18, $19, $5 is null, $7 is null, nullif($20::bigint, 0))
on conflict do nothing`

// Insertion is the statement that stores a new dead letter, with its arguments; it does nothing where the event has
// one already. The inbox runs it in the transaction that gives the record up.
func Insertion(l Letter) (sql string, args []any, err error) {
	headers, err := EncodeHeaders(l.Headers)
	if err != nil {
		return "", nil, err
	}
	recordTime, recordMS := OrNull(l.RecordTime), l.RecordMS
	if recordTime == nil && !l.RecordTime.IsZero() {
		recordMS = l.RecordTime.UnixMilli()
	}
	return insertLetter, []any{
		l.Consumer, l.EventID, Text(l.EventType), l.Version, l.Key, headers, l.Payload, l.Group, l.Topic,
		l.Partition, l.Offset, recordTime, l.Class, l.Code, Text(failure.Brief(l.Error)), l.Attempts,
		l.FirstFailedAt, l.Holds, l.Remembered, recordMS,
	}, nil
}

// EncodeHeaders keeps order, duplicates and bytes: an array of [name, base64 of the value], with the base64 of the name
// behind it where that is not text.
func EncodeHeaders(headers []Header) ([]byte, error) {
	list := make([][]any, len(headers))
	for i, h := range headers {
		name := Text(h.Name)
		list[i] = []any{name, h.Value}
		if name != h.Name {
			list[i] = append(list[i], []byte(h.Name))
		}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode record headers: %w", err)
	}
	return encoded, nil
}

func decodeHeaders(encoded []byte) ([]Header, error) {
	var list []json.RawMessage
	err := json.Unmarshal(encoded, &list)
	headers := make([]Header, len(list))
	for i, header := range list {
		var bytes []byte
		parts := []any{&headers[i].Name, &headers[i].Value, &bytes}
		err = errors.Join(err, json.Unmarshal(header, &parts))
		switch len(parts) {
		case 2:
		case 3:
			headers[i].Name = string(bytes)
		default:
			err = errors.Join(err, errors.New("a header is not a name and a value"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("decode record headers: %w", err)
	}
	return headers, nil
}
