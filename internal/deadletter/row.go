package deadletter

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Columns is what [Scan] reads, in its order.
const Columns = `id, consumer, event_id, event_type, version, key, headers, payload, consumer_group, topic, partition,
    record_offset, record_time, edited_headers, edited_payload, edited_by, edited_at, class, code, error, attempts,
    first_failed_at, failed_at, state, holds, remembered, replays, outcome, settled_at`

// Scan reads a row of [Columns].
func Scan(row pgx.CollectableRow) (l Letter, err error) {
	var headers, editedHeaders, editedPayload []byte
	var editedBy string
	var recordTime, editedAt, settledAt *time.Time
	err = row.Scan(&l.ID, &l.Consumer, &l.EventID, &l.EventType, &l.Version, &l.Key, &headers, &l.Payload, &l.Group,
		&l.Topic, &l.Partition, &l.Offset, &recordTime, &editedHeaders, &editedPayload, &editedBy, &editedAt, &l.Class,
		&l.Code, &l.Error, &l.Attempts, &l.FirstFailedAt, &l.FailedAt, &l.State, &l.Holds, &l.Remembered, &l.Replays,
		&l.Outcome, &settledAt)
	if err != nil {
		return l, fmt.Errorf("read dead letter: %w", err)
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

// orNull keeps a time that a calendar has. A record's is 64 bits of milliseconds, which its producer chose: PostgreSQL
// refuses what is too far, and JSON has four digits for a year.
func orNull(t time.Time) *time.Time {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// encodeHeaders keeps order, duplicates and bytes: an array of [name, base64 of the value].
func encodeHeaders(headers []Header) ([]byte, error) {
	pairs := make([][2]any, len(headers))
	for i, h := range headers {
		pairs[i] = [2]any{Text(h.Name), h.Value}
	}
	encoded, err := json.Marshal(pairs)
	if err != nil {
		return nil, fmt.Errorf("encode record headers: %w", err)
	}
	return encoded, nil
}

func decodeHeaders(encoded []byte) ([]Header, error) {
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(encoded, &pairs); err != nil {
		return nil, fmt.Errorf("decode record headers: %w", err)
	}
	headers := make([]Header, len(pairs))
	for i, pair := range pairs {
		if err := json.Unmarshal(pair[0], &headers[i].Name); err != nil {
			return nil, fmt.Errorf("decode record headers: %w", err)
		}
		if err := json.Unmarshal(pair[1], &headers[i].Value); err != nil {
			return nil, fmt.Errorf("decode record headers: %w", err)
		}
	}
	return headers, nil
}

// Text makes foreign bytes storable as text: PostgreSQL refuses NUL and invalid UTF-8, and a dead letter must not fail
// on the very thing that made the record die.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// The second dead letter of one event would be the same record again, after a crash between commit and offset.
const insertLetter = `
insert into public.dead_letter (consumer, event_id, event_type, version, key, headers, payload, consumer_group, topic,
    partition, record_offset, record_time, class, code, error, attempts, first_failed_at, holds, remembered)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict do nothing`

// Insertion is the statement that files a new letter and does nothing where its event has one already, and its
// arguments: whoever decides that a record is given up runs it in the transaction of that decision.
func Insertion(l Letter) (sql string, args []any, err error) {
	headers, err := encodeHeaders(l.Headers)
	if err != nil {
		return "", nil, err
	}
	return insertLetter, []any{
		l.Consumer, l.EventID, Text(l.EventType), l.Version, notNil(l.Key), headers, notNil(l.Payload), l.Group, l.Topic,
		l.Partition, l.Offset, orNull(l.RecordTime), l.Class, l.Code, Text(l.Error), l.Attempts, l.FirstFailedAt,
		l.Holds, l.Remembered,
	}, nil
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
