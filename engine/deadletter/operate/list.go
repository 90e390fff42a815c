package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/deadletter"
)

// Summary is a dead letter as a list shows it: without what the record holds, the size of which its sender chose. In a
// list the key and the error are their beginnings, of at most 1024 bytes and 1000 characters.
type Summary struct {
	ID        int64
	Consumer  string
	EventID   string
	EventType string
	Version   int64
	Key       []byte
	Bytes     int // of the payload
	Topic     string
	Partition int32
	Offset    int64
	EditedBy  string // empty without an edit
	EditedAt  *time.Time

	Class         string
	Code          string
	Error         string
	Attempts      int
	FirstFailedAt time.Time
	FailedAt      time.Time

	State     deadletter.State
	Holds     bool
	Replays   int
	Outcome   string
	SettledAt *time.Time
}

// SummaryOf is the dead letter without what the record holds.
func SummaryOf(l deadletter.Letter) Summary {
	s := Summary{
		ID: l.ID, Consumer: l.Consumer, EventID: l.EventID, EventType: l.EventType, Version: l.Version, Key: l.Key,
		Bytes: len(l.Payload), Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Class: l.Class, Code: l.Code,
		Error: l.Error, Attempts: l.Attempts, FirstFailedAt: l.FirstFailedAt, FailedAt: l.FailedAt, State: l.State,
		Holds: l.Holds, Replays: l.Replays, Outcome: l.Outcome,
	}
	if l.Edited != nil {
		s.EditedBy, s.EditedAt = l.Edited.By, &l.Edited.At
	}
	if !l.SettledAt.IsZero() {
		s.SettledAt = &l.SettledAt
	}
	return s
}

// Parked says that the dead letter has not failed itself.
func (s Summary) Parked() bool { return s.Class == deadletter.ClassParked }

// The length of a payload is known without reading it.
const summaryColumns = `id, consumer, event_id, event_type, version, key_start, octet_length(payload), topic, partition,
    record_offset, edited_by, edited_at, class, code, left(error, 1000), attempts, first_failed_at, failed_at, state,
    holds, replays, outcome, settled_at`

const selectSummaries = `select ` + summaryColumns + ` from public.dead_letter where %s order by id limit %d`

// Summaries is a page of the dead letters that the filter picks, by ID. The next page begins with [Filter.After] at the
// last ID of this one, so it costs as much as the first, and dead letters that arrive meanwhile shift nothing. It reads
// no payload.
func (s *Store) Summaries(ctx context.Context, f Filter) ([]Summary, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Limit == 0 {
		f.Limit = defaultList
	}
	condition, args := f.Where(1)
	sql := fmt.Sprintf(selectSummaries, condition, f.Limit)
	rows, _ := s.pool.Query(ctx, sql, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Summary])
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
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
from public.dead_letter where consumer = $1 and event_id = $2 order by id limit 100`

// OfEvent are the dead letters of one event of one consumer, at most 100 of them. There are several where records with
// different payloads came under one id.
func (s *Store) OfEvent(ctx context.Context, consumer, eventID string) ([]Known, error) {
	rows, _ := s.pool.Query(ctx, selectOfEvent, consumer, eventID)
	known, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Known])
	if err != nil {
		return nil, fmt.Errorf("find dead letters of event: %w", err)
	}
	return known, nil
}
