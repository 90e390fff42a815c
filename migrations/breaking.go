package migrations

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// breakingMark begins a migration after which binaries that do not know it may not go on.
const breakingMark = "-- +goose Up\n-- Older binaries may not go on.\n"

// The list of the marked migrations is written before they run: a row counts once its migration is applied.
const createBreakingSQL = `
create table if not exists public.migration_breaking (
    set_name text   collate "C" not null,
    version  bigint not null,
    primary key (set_name, version)
)`

const insertBreakingSQL = `
insert into public.migration_breaking (set_name, version) values ($1, $2) on conflict do nothing`

func recordBreaking(ctx context.Context, db *sql.DB, set Set, sources []*goose.Source) error {
	for _, source := range sources {
		content, err := fs.ReadFile(set.FS, source.Path)
		if err != nil {
			return err
		}
		if !bytes.Contains(content, []byte(breakingMark)) {
			continue
		}
		if _, err = db.ExecContext(ctx, createBreakingSQL); err == nil {
			_, err = db.ExecContext(ctx, insertBreakingSQL, set.Name, source.Version)
		}
		if err != nil {
			return fmt.Errorf("record breaking migration %s: %w", source.Path, err)
		}
	}
	return nil
}

const isBreakingSQL = `
select exists (select from public.migration_breaking where set_name = $1 and version > $2 and version <= $3)`

func isBreaking(ctx context.Context, db *sql.DB, newer Difference) (breaking bool, err error) {
	exists, err := tableExists(ctx, db, "public.migration_breaking")
	if err != nil || !exists {
		return false, err
	}
	err = db.QueryRowContext(ctx, isBreakingSQL, newer.Set, newer.Binary, newer.Database).Scan(&breaking)
	return breaking, err
}
