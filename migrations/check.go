package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

// Codes of a [SchemaError].
const (
	CodeOlder = "schema_older" // run the migrate command of this binary
	CodeNewer = "schema_newer" // a newer binary has migrated: run that one
)

// SchemaError says that a database does not fit this binary.
type SchemaError struct {
	Code string
	Set  string
	// Versions are those that the other side lacks: of the binary when Code is [CodeOlder], else of the database.
	Versions []int64
}

func (e *SchemaError) Error() string {
	if e.Code == CodeOlder {
		return fmt.Sprintf("%s: %s lacks migrations %v", e.Code, e.Set, e.Versions)
	}
	return fmt.Sprintf("%s: %s has migrations %v that this binary does not know", e.Code, e.Set, e.Versions)
}

// Check compares the database with this binary's sets and changes nothing. It returns nil when they are the same,
// else one [SchemaError] per set that differs, joined; older wins when a set differs both ways.
func Check(ctx context.Context, pool *pgxpool.Pool, sets ...Set) error {
	var problems []error
	for _, set := range sets {
		have, err := recorded(ctx, pool, set)
		if err != nil {
			return fmt.Errorf("read migrations of %s: %w", set.Name, err)
		}
		want, err := known(set)
		if err != nil {
			return fmt.Errorf("list migrations of %s: %w", set.Name, err)
		}
		if missing := without(want, have); len(missing) > 0 {
			problems = append(problems, &SchemaError{Code: CodeOlder, Set: set.Name, Versions: missing})
		} else if extra := without(have, want); len(extra) > 0 {
			problems = append(problems, &SchemaError{Code: CodeNewer, Set: set.Name, Versions: extra})
		}
	}
	return errors.Join(problems...)
}

const tableExistsSQL = `select to_regclass($1) is not null`

// recorded lists the versions the database says it has, without goose's own 0.
func recorded(ctx context.Context, pool *pgxpool.Pool, set Set) ([]int64, error) {
	table := pgx.Identifier{set.table()}.Sanitize()
	var exists bool
	if err := pool.QueryRow(ctx, tableExistsSQL, table).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	rows, _ := pool.Query(ctx, `select version_id from `+table+` where is_applied and version_id > 0 order by version_id`)
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// known lists the versions this binary holds.
func known(set Set) (versions []int64, err error) {
	names, _ := fs.Glob(set.FS, "*.sql") // its error would be the pattern's
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

func without(all, taken []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(all), func(v int64) bool { return slices.Contains(taken, v) })
}
