package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Remembered is an event that a consumer processed.
type Remembered struct {
	Consumer, EventID, EventType string
	Outcome                      Outcome // applied, or why it was not
	ProcessedAt                  time.Time
	PayloadHash                  []byte // SHA-256
	Topic                        string
	Partition                    int32
	Offset                       int64
}

const lookup = `
select consumer, event_id, event_type, coalesce(nullif(metadata->>'outcome', ''), 'applied'), processed_at,
    payload_hash, coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, 0),
    coalesce((metadata->>'offset')::bigint, 0)
from public.inbox
where consumer = any($1) and event_id = $2
order by consumer`

// Lookup says what the consumers remember of an event. Nothing: it never came, or it was forgotten since, or it is
// among the dead letters under an id of its own. It costs one index lookup for each consumer and day.
func Lookup(ctx context.Context, q Querier, consumers []string, eventID string) ([]Remembered, error) {
	rows, err := q.Query(ctx, lookup, consumers, eventID)
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Remembered])
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	return found, nil
}
