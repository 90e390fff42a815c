package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

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
