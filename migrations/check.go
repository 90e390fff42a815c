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
	CodeNewer = "schema_newer" // run the release that migrated, or a later one
)

// SchemaError reports that a database does not fit this binary.
type SchemaError struct {
	Code string
	Set  string
	// Versions are those that the database lacks when Code is [CodeOlder], else those that this binary lacks.
	Versions []int64
}

func (e *SchemaError) Error() string {
	if e.Code == CodeOlder {
		return fmt.Sprintf("%s: %s lacks migrations %v: run migrate of this release", e.Code, e.Set, e.Versions)
	}
	return fmt.Sprintf("%s: %s has migrations %v, after which older binaries may not go on: run the release that "+
		"migrated, or a later one", e.Code, e.Set, e.Versions)
}

// Newer is a set of which the database has more migrations than this binary.
type Newer struct {
	Set      string
	Versions []int64 // that this binary does not know
}

// Check compares the database with this binary's sets and changes nothing. Its error joins one [SchemaError] for each
// set that does not fit: the database lacks a migration, or has an unknown one after which older binaries may not go
// on. Without an error it lists the sets that are newer in the database. The binary may serve on them.
func Check(ctx context.Context, pool *pgxpool.Pool, sets ...Set) (newer []Newer, err error) {
	breaking, err := readBreaking(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("read breaking migrations: %w", err)
	}
	var problems []error
	for _, set := range sets {
		have, err := recorded(ctx, pool, set)
		if err != nil {
			return nil, fmt.Errorf("read migrations of %s: %w", set.Name, err)
		}
		want, err := known(set)
		if err != nil {
			return nil, fmt.Errorf("list migrations of %s: %w", set.Name, err)
		}
		missing, unknown := without(want, have), without(have, want)
		fatal := slices.ContainsFunc(unknown, func(v int64) bool { return slices.Contains(breaking[set.Name], v) })
		switch {
		case len(missing) > 0:
			problems = append(problems, &SchemaError{CodeOlder, set.Name, missing})
		case fatal:
			problems = append(problems, &SchemaError{CodeNewer, set.Name, unknown})
		case len(unknown) > 0:
			newer = append(newer, Newer{set.Name, unknown})
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return newer, nil
}

const tableExistsSQL = `select to_regclass($1) is not null`

func tableExists(ctx context.Context, pool *pgxpool.Pool, name string) (exists bool, err error) {
	err = pool.QueryRow(ctx, tableExistsSQL, name).Scan(&exists)
	return exists, err
}

// recorded lists the versions that the database has, without goose's own 0.
func recorded(ctx context.Context, pool *pgxpool.Pool, set Set) ([]int64, error) {
	table := pgx.Identifier{set.table()}.Sanitize()
	exists, err := tableExists(ctx, pool, table)
	if err != nil || !exists {
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
