package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

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

// Get returns a dead letter, with its record if content is set, and the actions on it, oldest first. The error is an
// [*Error] with [CodeNotFound] if there is none.
func (s *Store) Get(ctx context.Context, id int64, content bool) (Letter, []audit.Action, error) {
	l, err := get(ctx, s.pool, id, "")
	if err != nil {
		return l, nil, err
	}
	if content {
		l.ShownHeaders = make([]ShownHeader, len(l.Headers))
		for i, h := range l.Headers {
			l.ShownHeaders[i] = show(h)
		}
	} else {
		l.Payload, l.EditedPayload, l.Headers, l.EditedHeaders = nil, nil, nil, nil
	}
	history, err := audit.Of(ctx, s.pool, Kind, strconv.FormatInt(id, 10))
	return l, history, err
}

func get(ctx context.Context, q audit.Querier, id int64, lock string) (Letter, error) {
	rows, _ := q.Query(ctx, `select `+Columns+` from public.dead_letter where id = $1 `+lock, id)
	return readOne(rows, &Error{CodeNotFound, fmt.Sprintf("no dead letter %d", id)})
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
