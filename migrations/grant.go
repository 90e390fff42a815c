package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const tablesSQL = `
select c.relname, c.relispartition from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by 1`

// Grant gives a role what a service needs to serve, takes from it what it had beyond that, and needs to be the owner of
// the tables. The role may read and write rows and nothing else: it cannot make, change or drop a table, change or
// delete an event in the outbox, an operator's action or the record of migrations. Partitions are made and dropped by
// functions that check what they are asked.
//
// It runs in one transaction, so a service that serves meanwhile notices nothing. No error repeats the dsn.
func Grant(ctx context.Context, dsn, role string) error {
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return ErrInvalidDSN
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to grant: %w", err)
	}
	defer func() { _ = closeConn(ctx, conn) }() // what it did is committed
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return grant(ctx, tx, pgx.Identifier{role}.Sanitize()) })
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}

func grant(ctx context.Context, tx pgx.Tx, role string) error {
	rows, err := tx.Query(ctx, tablesSQL)
	if err != nil {
		return err
	}
	statements := []string{
		"revoke all on all tables in schema public from " + role,
		"grant usage on schema public to " + role,
		"grant usage, select, update on all sequences in schema public to " + role,
		"grant execute on all functions in schema public to " + role,
	}
	var table string
	var partition bool
	_, err = pgx.ForEachRow(rows, []any{&table, &partition}, func() error {
		if rights := rightsOn(table, partition); rights != "" {
			statements = append(statements,
				fmt.Sprintf("grant %s on public.%s to %s", rights, pgx.Identifier{table}.Sanitize(), role))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// rightsOn are those of a serving role. What it does to a partition it does to the table that it belongs to, but for
// two whose rows the inbox deletes one by one.
func rightsOn(table string, partition bool) string {
	switch {
	case table == "inbox_foreign" || table == "inbox_future":
		return "select, delete"
	case partition:
		return ""
	case strings.HasPrefix(table, "migration_"):
		return "select"
	case table == "outbox" || table == "operator_action":
		return "select, insert"
	}
	return "select, insert, update, delete"
}
