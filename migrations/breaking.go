package migrations

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

// breakingMark begins a migration after which binaries that do not know it may not go on.
const breakingMark = "-- +goose Up\n-- Older binaries may not go on.\n"

// createBreakingSQL makes the list of the marked migrations. The list is written before they run: a row counts once its
// migration is applied.
const createBreakingSQL = `
create table if not exists public.migration_breaking (
    set_name text   collate "C" not null,
    version  bigint not null,
    primary key (set_name, version)
)`

const insertBreakingSQL = `
insert into public.migration_breaking (set_name, version) values ($1, $2) on conflict do nothing`

// recordBreaking lists the marked migrations of a set in the database.
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

// readBreaking returns the listed migrations of each set.
func readBreaking(ctx context.Context, pool *pgxpool.Pool) (map[string][]int64, error) {
	breaking := map[string][]int64{}
	exists, err := tableExists(ctx, pool, "public.migration_breaking")
	if err != nil || !exists {
		return breaking, err
	}
	rows, _ := pool.Query(ctx, `select set_name, version from public.migration_breaking`)
	var set string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&set, &version}, func() error {
		breaking[set] = append(breaking[set], version)
		return nil
	})
	return breaking, err
}
