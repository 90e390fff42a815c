package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/pressly/goose/v3"
)

// breakingMark begins a migration after which binaries that do not know it may not go on.
const breakingMark = "-- +goose Up\n-- Older binaries may not go on.\n"

// The files are recorded before they run: a row counts once its migration is applied.
const createFileSQL = `
create table if not exists public.migration_file (
    set_name    text    collate "C" not null,
    version     bigint  not null,
    hash        bytea   not null,
    is_breaking boolean not null,
    primary key (set_name, version)
)`

// recordFileSQL returns false for an applied file that has changed.
const recordFileSQL = `
insert into public.migration_file as f (set_name, version, hash, is_breaking) values ($1, $2, $3, $4)
on conflict (set_name, version) do update
set hash = case when $5 then f.hash else excluded.hash end, is_breaking = excluded.is_breaking
returning hash = $3`

// recordFiles refuses files that differ from those that the database has applied.
func recordFiles(ctx context.Context, db *sql.DB, set Set, provider *goose.Provider) error {
	files, err := provider.Status(ctx)
	if err == nil {
		_, err = db.ExecContext(ctx, createFileSQL)
	}
	if err != nil {
		return fmt.Errorf("record files: %w", err)
	}
	var problems []error
	for _, file := range files {
		content, err := fs.ReadFile(set.FS, file.Source.Path)
		if err != nil {
			return err
		}
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")) // git may have changed it
		hash, isSame := sha256.Sum256(content), false
		err = db.QueryRowContext(ctx, recordFileSQL, set.Name, file.Source.Version, hash[:],
			bytes.Contains(content, []byte(breakingMark)), file.State == goose.StateApplied).Scan(&isSame)
		if err != nil {
			return fmt.Errorf("record %s: %w", file.Source.Path, err)
		}
		if !isSame {
			problems = append(problems, fmt.Errorf("%s: %s is not the file that this database has applied as number %d: "+
				"leave applied files as they are and add one; for a database of your own: make reset",
				CodeEdited, path.Base(file.Source.Path), file.Source.Version))
		}
	}
	return errors.Join(problems...)
}

const isBreakingSQL = `
select exists (select from public.migration_file
    where set_name = $1 and version > $2 and version <= $3 and is_breaking)`

func isBreaking(ctx context.Context, db *sql.DB, newer Difference) (breaking bool, err error) {
	exists, err := tableExists(ctx, db, "public.migration_file")
	if err != nil || !exists {
		return false, err
	}
	err = db.QueryRowContext(ctx, isBreakingSQL, newer.Set, newer.Binary, newer.Database).Scan(&breaking)
	return breaking, err
}
