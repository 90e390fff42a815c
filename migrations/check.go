package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// Codes of a [SchemaError].
const (
	CodeOlder = "schema_older" // run the migrate command of this binary
	CodeNewer = "schema_newer" // run the release that migrated, or a later one
)

// CodeEdited begins the error of [Migration.Run] for a file that has changed since the database applied it.
const CodeEdited = "schema_edited"

// SchemaError reports that a database does not fit this binary.
type SchemaError struct {
	Code string
	Difference
}

func (e *SchemaError) Error() string {
	advice := "run migrate of this release"
	if e.Code == CodeNewer {
		advice = "older binaries may not go on: run the release that migrated, or a later one"
	}
	return fmt.Sprintf("%s: the database has %s up to migration %d, this release up to %d: %s",
		e.Code, e.Set, e.Database, e.Binary, advice)
}

// Difference is a set's state in a database and in this binary.
type Difference struct {
	Set      string
	Database int64 // its last migration, 0 for none
	Binary   int64 // its last migration
}

// Check joins a [SchemaError] for each set that does not fit: the database lacks a migration, or has an unknown one
// after which older binaries may not go on. Without an error it lists the sets that are newer in the database.
func Check(ctx context.Context, pool *pgxpool.Pool, sets ...Set) (newer []Difference, err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	var problems []error
	for _, set := range sets {
		pending, found, err := set.compare(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("read migrations of %s: %w", set.Name, err)
		}
		if pending {
			problems = append(problems, &SchemaError{CodeOlder, found})
		} else if found.Database > found.Binary {
			breaking, err := isBreaking(ctx, db, found)
			if err != nil {
				return nil, fmt.Errorf("read breaking migrations of %s: %w", set.Name, err)
			}
			if breaking {
				problems = append(problems, &SchemaError{CodeNewer, found})
			}
			newer = append(newer, found)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return newer, nil
}

// compare returns the last migrations of both, and whether the database lacks one.
func (s Set) compare(ctx context.Context, db *sql.DB) (pending bool, found Difference, err error) {
	found.Set = s.Name
	provider, err := s.provider(db)
	if err != nil {
		return false, found, err
	}
	sources := provider.ListSources()
	found.Binary = sources[len(sources)-1].Version
	exists, err := tableExists(ctx, db, s.table())
	if err != nil || !exists { // the library would make the table
		return true, found, err
	}
	if pending, err = provider.HasPending(ctx); err == nil {
		found.Database, err = provider.GetDBVersion(ctx)
	}
	return pending, found, err
}

func tableExists(ctx context.Context, db *sql.DB, name string) (exists bool, err error) {
	err = db.QueryRowContext(ctx, `select to_regclass($1) is not null`, name).Scan(&exists)
	return exists, err
}
