package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
)

// Stats is what an inbox holds, for all consumers of its database.
type Stats struct {
	RemembersFrom time.Time // events before this are never applied
	Remembered    int64     // events, as the planner estimates them: counting would read every row
}

const readStats = `
select h.remembers_from,
    (select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
     from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'public.inbox'::regclass)
from public.inbox_horizon h`

// ReadStats reads the stats at the cost of a few rows, however much the inbox holds.
func ReadStats(ctx context.Context, q audit.Querier) (Stats, error) {
	rows, _ := q.Query(ctx, readStats)
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Stats])
	if err != nil {
		return s, fmt.Errorf("read inbox stats: %w", err)
	}
	return s, nil
}
