package migrations

import (
	"context"
	"database/sql"
	"fmt"
)

// A right on a table covers its partitions. The inbox deletes the rows of two of its partitions one by one.
const rightsSQL = `
select format('revoke all on all tables in schema public from %1$I;'
    ' revoke create on schema public from %1$I; grant usage on schema public to %1$I;'
    ' revoke all on all sequences in schema public from %1$I;'
    ' grant usage, select on all sequences in schema public to %1$I;'
    ' grant execute on all functions in schema public to %1$I', $1::text)
    || coalesce(string_agg(format('; grant %s on public.%I to %I', rights, c.relname, $1::text), ''), '')
from pg_class c
cross join lateral (select case
    when c.relname in ('inbox_foreign', 'inbox_future') then 'select, delete'
    when c.relispartition then null
    when c.relname like 'migration\_%' then 'select'
    when c.relname in ('outbox', 'operator_action') then 'select, insert'
    else 'select, insert, update, delete' end) r (rights)
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and rights is not null`

// grant lets a role serve, and takes its other rights. It may read and write rows, but not change a table, a sequence,
// an event in the outbox, an operator's action or the record of migrations. Functions make and drop partitions.
func grant(ctx context.Context, db *sql.DB, role string) error {
	var rights string
	err := db.QueryRowContext(ctx, rightsSQL, role).Scan(&rights)
	if err == nil {
		_, err = db.ExecContext(ctx, rights)
	}
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}
