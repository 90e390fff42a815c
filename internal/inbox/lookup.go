package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
)

// Remembered is an event that a consumer processed.
type Remembered struct {
	Consumer, EventID, EventType string
	// Outcome is what the consumer decided: applied, stale, gap, parked or dead; and applied or stale again after a
	// replay has settled the dead letter of one of the last three. It is OutcomeUnknown in rows from before all outcomes
	// were stored.
	Outcome     Outcome
	ProcessedAt time.Time
	PayloadHash []byte // SHA-256
	Topic       string
	Partition   int32
	Offset      int64
	Conflict    string // where a record lay that has the id with another payload and was only warned of; "" without one
	// Correlation is the event's correlation id, its own id for a first event.
	Correlation string
	// TakenAt is when its transaction began, by the clock of the process; nil in rows from before that was stored.
	TakenAt *time.Time
	// Metadata is what the handler put beside the id, a JSON object; nil: nothing. See [PutMetadata].
	Metadata json.RawMessage
}

// OutcomeUnknown is the outcome of an event that was applied or stale: its row does not say which.
const OutcomeUnknown Outcome = "applied or stale"

const lookup = `
select consumer, event_id, event_type, coalesce(nullif(metadata->>'outcome', ''), $3), processed_at,
    payload_hash, coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, 0),
    coalesce((metadata->>'offset')::bigint, 0), coalesce(metadata->>'conflict', ''),
    coalesce(metadata->>'correlation_id', event_id), (metadata->>'processing_time')::timestamptz,
    metadata->'caller'
from public.inbox
where consumer = any($1) and event_id = $2
order by consumer`

// Lookup says what the consumers remember of an event. Nothing: it never came, or it was forgotten since, or its type
// has no handler there, or it is among the dead letters under an id of its own. It costs one index lookup for each
// consumer and day.
func Lookup(ctx context.Context, q audit.Querier, consumers []string, eventID string) ([]Remembered, error) {
	rows, _ := q.Query(ctx, lookup, consumers, eventID, string(OutcomeUnknown))
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Remembered])
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	return found, nil
}
