package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// grantsSQL makes the statements that give a serving role its rights on tables. What it does to a partition it does to
// the table that it belongs to, but for two whose rows the inbox deletes one by one.
const grantsSQL = `
select format('grant %s on public.%I to %I', rights, c.relname, $1::text)
from pg_class c
cross join lateral (select case
    when c.relname in ('inbox_foreign', 'inbox_future') then 'select, delete'
    when c.relispartition then null
    when c.relname like 'migration\_%' then 'select'
    when c.relname in ('outbox', 'operator_action') then 'select, insert'
    else 'select, insert, update, delete' end) r (rights)
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and rights is not null
order by c.relname`

// Grant gives a role what a service needs to serve, takes from it what it had beyond that, and needs to be the owner of
// the tables. The role may read and write rows and nothing else: it cannot make, change or drop a table, change or
// delete an event in the outbox, an operator's action or the record of migrations. Partitions are made and dropped by
// functions that check what they are asked.
//
// It runs in one transaction, so a service that serves meanwhile notices nothing. No error repeats the dsn.
func Grant(ctx context.Context, dsn, role string) error {
	cfg, err := parse(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to grant rights: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what it did is committed
	to := pgx.Identifier{role}.Sanitize()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, grantsSQL, role)
		grants, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, sql := range append([]string{
			"revoke all on all tables in schema public from " + to,
			"grant usage on schema public to " + to,
			"grant usage, select, update on all sequences in schema public to " + to,
			"grant execute on all functions in schema public to " + to,
		}, grants...) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}
