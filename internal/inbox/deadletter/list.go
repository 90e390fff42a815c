package deadletter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Summary is a dead letter as it is shown: without what the record holds, the size of which its sender chose. In a list
// the key and the error are their beginnings, of at most 1024 bytes and 1000 characters.
type Summary struct {
	ID        int64      `json:"id"`
	Consumer  string     `json:"consumer"`
	EventID   string     `json:"event_id"`
	Type      string     `json:"type"`
	Version   int64      `json:"version"`
	Key       Shown      `json:"key"`
	Bytes     int        `json:"bytes"` // of the payload
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	EditedBy  string     `json:"edited_by,omitempty"` // empty without an edit
	EditedAt  *time.Time `json:"edited_at,omitempty"`

	Class         string    `json:"class"`
	Code          string    `json:"code"`
	Error         string    `json:"error"`
	Attempts      int       `json:"attempts"`
	FirstFailedAt time.Time `json:"first_failed_at"`
	FailedAt      time.Time `json:"failed_at"`

	State     State      `json:"state"`
	Holds     bool       `json:"holds"`
	Replays   int        `json:"replays"`
	Outcome   string     `json:"outcome,omitempty"`
	SettledAt *time.Time `json:"settled_at,omitempty"`

	// What the record holds, only if asked for by [Store.Get].
	Payload       []byte        `json:"payload,omitzero" db:"-"`
	EditedPayload []byte        `json:"edited_payload,omitzero" db:"-"`
	Headers       []ShownHeader `json:"headers,omitzero" db:"-"`
}

// Shown is foreign bytes as text: what is none is replaced.
type Shown string

// ScanBytes implements [pgtype.BytesScanner].
func (s *Shown) ScanBytes(b []byte) error {
	*s = Shown(strings.ToValidUTF8(string(b), "\uFFFD"))
	return nil
}

// ShownHeader is a header as it is shown and edited. Its name need not be text, and a value that is null is shown as an
// empty one.
type ShownHeader struct {
	Name       string `json:"name"`
	NameBase64 []byte `json:"name_base64,omitempty"` // of a name that is not text
	Value      []byte `json:"value"`
	Null       bool   `json:"null,omitempty"`
}

// Record is the header of the record that is meant.
func (h ShownHeader) Record() Header {
	in := Header{Name: h.Name, Value: h.Value}
	if h.NameBase64 != nil {
		in.Name = string(h.NameBase64)
	}
	if h.Null {
		in.Value = nil
	}
	return in
}

// notNull returns empty bytes for null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// show adds what the record holds.
func (s *Summary) show(l Letter) {
	s.Payload = notNull(l.Payload)
	if l.Edited != nil {
		s.EditedPayload = notNull(l.Edited.Payload)
	}
	s.Headers = make([]ShownHeader, len(l.Headers))
	for i, h := range l.Headers {
		s.Headers[i] = ShownHeader{Name: Text(h.Name), Value: notNull(h.Value), Null: h.Value == nil}
		if s.Headers[i].Name != h.Name {
			s.Headers[i].NameBase64 = []byte(h.Name)
		}
	}
}

// Parked reports whether the dead letter waits without having failed.
func (s Summary) Parked() bool { return s.Class == ClassParked }

// The length of a payload is known without reading it.
const summaryColumns = `id, consumer, event_id, event_type, version, key_start, octet_length(payload), topic, partition,
    record_offset, edited_by, edited_at, class, code, left(error, 1000), attempts, first_failed_at, failed_at, state,
    holds, replays, outcome, settled_at`

const selectSummaries = `select ` + summaryColumns + ` from public.dead_letter where %[1]s order by id limit %[2]d`

// Summaries returns a page of the dead letters that the filter picks, by ID, without payloads. [Filter.After] is the
// last ID of the page before. So each page costs the same, and new dead letters shift nothing.
func (s *Store) Summaries(ctx context.Context, f Filter) ([]Summary, error) {
	return list(ctx, s, f, selectSummaries, pgx.RowToStructByPos[Summary])
}

// Known is a dead letter with what tells its record from another one of the same event: the SHA-256 of the payload that
// came and of the one that a replay takes.
type Known struct {
	Summary
	Came, Current []byte
}

// The index of the events begins with the consumer.
const selectOfEvent = `
select ` + summaryColumns + `, sha256(payload), sha256(coalesce(edited_payload, payload))
from public.dead_letter where consumer = any($1) and event_id = $2 order by consumer, id limit 100`

// OfEvent are the dead letters of one event, at most 100 of them. A consumer has several where records with different
// payloads came under one id.
func (s *Store) OfEvent(ctx context.Context, consumers []string, eventID string) ([]Known, error) {
	rows, _ := s.pool.Query(ctx, selectOfEvent, consumers, eventID)
	known, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Known])
	if err != nil {
		return nil, fmt.Errorf("find dead letters of event: %w", err)
	}
	return known, nil
}

// Group is the dead letters of one consumer that have the same reason and the same type of event.
type Group struct {
	Consumer string    `json:"consumer"`
	Code     string    `json:"code"`
	Type     string    `json:"type"`
	Count    int64     `json:"count"`
	Keys     int64     `json:"keys"`
	Oldest   time.Time `json:"oldest"` // first failure of any
	Newest   time.Time `json:"newest"` // last failure of any
	Error    string    `json:"error"`  // the first 1000 characters of its error
	Example  int64     `json:"example"`
}

const selectGroups = `
select g.consumer, g.code, g.event_type, g.letters, g.keys, g.oldest, g.newest, left(l.error, 1000), g.example
from (
    select consumer, code, event_type, count(*) as letters, count(distinct key) as keys,
        min(first_failed_at) as oldest, max(failed_at) as newest, max(id) as example
    from public.dead_letter where %[1]s
    group by consumer, code, event_type
) g
join public.dead_letter l on l.id = g.example
order by g.letters desc, g.consumer, g.code, g.event_type`

// Groups counts the dead letters that the filter picks, the largest group first. The example is each group's latest
// dead letter.
func (s *Store) Groups(ctx context.Context, f Filter) ([]Group, error) {
	return list(ctx, s, f, selectGroups, pgx.RowToStructByPos[Group])
}
