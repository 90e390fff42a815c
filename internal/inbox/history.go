package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
)

// Remembered is an event that a consumer has processed.
type Remembered struct {
	Consumer, EventID, EventType string
	// Outcome is applied; in rows of the first edition it may also be stale.
	Outcome     Outcome
	ProcessedAt time.Time
	PayloadHash []byte // SHA-256; empty for an id without a payload, see [Inbox.Process]
	Topic       string
	Partition   int32
	Offset      int64
	// Correlation is the event's correlation id; its own id for a first event.
	Correlation string
	// TakenAt is when its transaction began, by the clock of the process; nil in old rows.
	TakenAt *time.Time
	// Took is how long its handler ran, in milliseconds, without the writes that it queued; nil in old rows.
	Took *int64
	// Metadata is what the handler put there, a JSON object; nil: nothing. See [PutMetadata].
	Metadata json.RawMessage
}

const remembered = `
select consumer, event_id, event_type, coalesce(nullif(metadata->>'outcome', ''), 'applied'), processed_at,
    payload_hash, coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, 0),
    coalesce((metadata->>'offset')::bigint, 0), coalesce(metadata->>'correlation_id', event_id),
    (metadata->>'processing_time')::timestamptz, (metadata->>'processing_time_ms')::bigint, metadata->'caller'
from public.inbox
`

const lookup = remembered + `where consumer = any($1) and event_id = $2 order by consumer`

// Lookup returns what the consumers remember of an event. No row means that it never came, that it was forgotten, that
// its type has no handler there, or that it is a dead letter. It costs one index lookup for each consumer and day.
func Lookup(ctx context.Context, q audit.Querier, consumers []string, eventID string) ([]Remembered, error) {
	rows, _ := q.Query(ctx, lookup, consumers, eventID)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Remembered])
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	return found, nil
}
