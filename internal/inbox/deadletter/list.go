package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const selectSummaries = `select ` + briefColumns + ` from public.dead_letter where %[1]s order by id limit %[2]d`

// Summaries returns a page of the selected dead letters, by ID, without their records, from [Filter.After] on.
func (s *Store) Summaries(ctx context.Context, f Filter) ([]Letter, error) {
	return list(ctx, s, f, selectSummaries, Scan)
}

// The index of the events begins with the consumer.
const selectOfEvent = `
select ` + briefColumns + `
from public.dead_letter where consumer = any($1) and event_id = $2 order by consumer, id limit 100`

// OfEvent returns an event's dead letters without their records, at most 100. A consumer has several if payloads
// differ.
func (s *Store) OfEvent(ctx context.Context, consumers []string, eventID string) ([]Letter, error) {
	rows, _ := s.pool.Query(ctx, selectOfEvent, consumers, eventID)
	letters, err := pgx.CollectRows(rows, Scan)
	if err != nil {
		return nil, fmt.Errorf("find dead letters of event: %w", err)
	}
	return letters, nil
}

// Group is the dead letters of one consumer, reason and event type.
type Group struct {
	Consumer string    `json:"consumer"`
	Code     string    `json:"code"`
	Type     string    `json:"type"`
	Count    int64     `json:"count"`
	Keys     int64     `json:"keys"`
	Oldest   time.Time `json:"oldest"` // first failure
	Newest   time.Time `json:"newest"` // last failure
	Error    string    `json:"error"`  // its first 1000 characters
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

// Groups counts the selected dead letters, the largest group first. The example is the latest one.
func (s *Store) Groups(ctx context.Context, f Filter) ([]Group, error) {
	return list(ctx, s, f, selectGroups, pgx.RowToStructByPos[Group])
}
