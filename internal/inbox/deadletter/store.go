package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/audit"
)

// Store reads and changes the dead letters of one database.
type Store struct{ pool *pgxpool.Pool }

// NewStore needs the tables of migrations/inbox and migrations/audit.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// list completes the statement with the filter's condition and limit.
func list[T any](ctx context.Context, s *Store, f Filter, sql string, row pgx.RowToFunc[T]) ([]T, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	const defaultLimit = 100
	condition, args := f.Where(1)
	rows, _ := s.pool.Query(ctx, fmt.Sprintf(sql, condition, cmp.Or(f.Limit, defaultLimit)), args...)
	found, err := pgx.CollectRows(rows, row)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return found, nil
}

const selectSummaries = `select ` + briefColumns + ` from public.dead_letter where %[1]s order by id limit %[2]d`

// Summaries returns a page of the selected dead letters, by ID, without their records, from [Filter.After] on.
func (s *Store) Summaries(ctx context.Context, f Filter) ([]Letter, error) {
	return list(ctx, s, f, selectSummaries, Scan)
}

// Get returns a dead letter, with its record if content is set, and the actions on it, oldest first.
func (s *Store) Get(ctx context.Context, id int64, content bool) (Letter, []audit.Action, error) {
	l, err := get(ctx, s.pool, id, "")
	if err != nil {
		return l, nil, err
	}
	if !content {
		l.Payload, l.EditedPayload, l.Headers, l.EditedHeaders = nil, nil, nil, nil
	}
	history, err := audit.Of(ctx, s.pool, Kind, strconv.FormatInt(id, 10))
	return l, history, err
}

func get(ctx context.Context, q audit.Querier, id int64, lock string) (Letter, error) {
	rows, _ := q.Query(ctx, `select `+Columns+` from public.dead_letter where id = $1 `+lock, id)
	return readOne(rows, &Error{CodeNotFound, fmt.Sprintf("no dead letter %d", id)})
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
    select consumer, code, event_type, count(*) as letters, count(distinct nullif(key, '')) as keys,
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

// The stable codes of an [Error].
const (
	CodeNotFound        = "not_found"
	CodeNotWaiting      = "not_waiting"
	CodeEditedSince     = "edited_since"
	CodeMissingOperator = "missing_operator"
	CodeMissingFilter   = "missing_filter"
	CodeInvalidFilter   = "invalid_filter"
	CodeNothingToEdit   = "nothing_to_edit"
	CodeInvalidHeaders  = "invalid_headers"
)

// An Error is a refusal. No row was changed.
type Error struct {
	Code   string
	Detail string
}

func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// ErrorCode is the stable code.
func (e *Error) ErrorCode() string { return e.Code }
