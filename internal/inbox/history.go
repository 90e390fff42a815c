package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/twinbox/internal/audit"
)

// Remembered is an event that a consumer has processed.
type Remembered struct {
	Consumer, EventID, EventType string
	// Outcome is applied; in old rows it may be stale.
	Outcome     Outcome
	ProcessedAt time.Time
	PayloadHash []byte // SHA-256; empty after [Inbox.Process]
	Topic       string
	Partition   int32
	Offset      int64
	Correlation string          // the correlation id; a first event's own id
	TakenAt     *time.Time      // when its transaction began, by the process's clock; nil in old rows
	Took        *int64          // the handler's milliseconds, without queued writes; nil in old rows
	Metadata    json.RawMessage // see [PutMetadata]
}

// The columns are in the order of the fields of [Remembered].
const selectRemembered = `
select consumer, event_id, event_type, coalesce(nullif(metadata->>'outcome', ''), 'applied'), processed_at,
    payload_hash, coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, 0),
    coalesce((metadata->>'offset')::bigint, 0), coalesce(metadata->>'correlation_id', event_id),
    (metadata->>'processing_time')::timestamptz, (metadata->>'processing_time_ms')::bigint, metadata->'caller'
`

const lookup = selectRemembered + `from public.inbox where consumer = any($1) and event_id = $2 order by consumer`

// Lookup returns the consumers' rows of an event.
func Lookup(ctx context.Context, q audit.Querier, consumers []string, eventID string) ([]Remembered, error) {
	rows, _ := q.Query(ctx, lookup, consumers, eventID)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Remembered])
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	return found, nil
}

// HistoryFilter selects applied events. Consumers and EventType are required. The type is whole, or the last name
// before its version.
type HistoryFilter struct {
	Consumers []string
	EventType string
	// Since, inclusive, and Until, exclusive, bound the time in the event's id, else its processing.
	Since, Until time.Time
	// Limit bounds the returned events. Default: 100.
	Limit int
}

// historyRows bounds the rows read of each consumer, twice if there are ids without a time.
const historyRows = "200000"

// Ids without a time share a table partition, with an index on processed_at.
const (
	newestDays = `select i.*, i.event_time as at from public.inbox i
    where i.consumer = c.name and i.event_time >= greatest($2::timestamptz, '2000-01-01 00:00:00+00')
        and i.event_time < $3::timestamptz order by i.event_id desc`
	newestForeign = `select i.*, i.processed_at as at from public.inbox i
    where i.consumer = c.name and i.event_time = '1970-01-01 00:00:00+00' and i.processed_at >= $2::timestamptz
        and i.processed_at < $3::timestamptz order by i.processed_at desc`

	selectHistory = selectRemembered + `
from unnest($1::text[]) as c (name)
cross join lateral (
    (select * from (` + newestDays + ` limit ` + historyRows + `) as days
    where $4 in (event_type, split_part(event_type, '.', -2)) order by event_id desc limit $5)
    union all
    (select * from (` + newestForeign + ` limit ` + historyRows + `) as foreign_ids
    where $4 in (event_type, split_part(event_type, '.', -2)) order by at desc limit $5)
) as applied
order by at desc, event_id desc, consumer limit $5`

	selectUnread = `
select max(at) from unnest($1::text[]) as c (name)
cross join lateral (
    (select at from (` + newestDays + ` offset ` + historyRows + ` limit 1) as days)
    union all
    (select at from (` + newestForeign + ` offset ` + historyRows + ` limit 1) as foreign_ids)
) as unread`
)

// History returns the applied events of a type, newest first.
//
// It reads at most the newest 200,000 rows of each consumer between Since and Until: no index has the type. If it found
// fewer than Limit events, unread is the time of the newest row that is left, else nil; to continue, set Until to the
// next millisecond.
func History(
	ctx context.Context, q audit.Querier, f HistoryFilter,
) (found []Remembered, unread *time.Time, err error) {
	limit, until := cmp.Or(f.Limit, 100), pgtype.Timestamptz{Time: f.Until, Valid: true}
	if f.Until.IsZero() {
		until.InfinityModifier = pgtype.Infinity
	}
	rows, _ := q.Query(ctx, selectHistory, f.Consumers, f.Since, until, f.EventType, limit)
	found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Remembered])
	if err == nil && len(found) < limit {
		rows, _ = q.Query(ctx, selectUnread, f.Consumers, f.Since, until)
		unread, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[*time.Time])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read history: %w", err)
	}
	return found, unread, nil
}
