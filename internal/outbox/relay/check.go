package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A CheckError lists all problems that keep a relay from working. A new try changes nothing.
type CheckError struct {
	Problems []Problem
}

// Problem is one problem of a [CheckError]. The codes are stable.
type Problem struct {
	Code   string
	Detail string
}

func (e *CheckError) Error() string {
	problems := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		problems[i] = p.Code + ": " + p.Detail
	}
	return "outbox refuses to work: " + strings.Join(problems, "; ")
}

// Has reports whether the error has a problem of that code.
func (e *CheckError) Has(code string) bool {
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Code == code })
}

// RefuseIf adds a problem if wrong is true.
func (e *CheckError) RefuseIf(wrong bool, code, detail string) {
	if wrong {
		e.Problems = append(e.Problems, Problem{code, detail})
	}
}

// Err returns e, or nil without a problem.
func (e *CheckError) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var refused CheckError
	err := refused.ask(ctx, conn, checkServerSQL, conn.PgConn().PID())
	if err == nil && !refused.Has("schema") {
		err = refused.ask(ctx, conn, checkTablesSQL)
	}
	if err != nil {
		return fmt.Errorf("check server: %w", err)
	}
	return refused.Err()
}

func (e *CheckError) ask(ctx context.Context, conn *pgx.Conn, sql string, args ...any) error {
	rows, _ := conn.Query(ctx, sql, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Problem])
	e.Problems = append(e.Problems, found...)
	return err
}

// checkServerSQL runs before the settings: it must see synchronous_commit as the writers of this role have it.
const checkServerSQL = `
select code, detail
from (values
    (pg_is_in_recovery(), 'standby', 'the server is a standby; point DATABASE_URL at the primary'),
    (current_setting('server_version_num')::int < 150000, 'server_version',
        current_setting('server_version_num') || ' is older than 15; upgrade PostgreSQL'),
    (current_setting('server_encoding') <> 'UTF8', 'server_encoding',
        current_setting('server_encoding') || ' is not UTF8; create the database with encoding UTF8'),
    (current_setting('synchronous_commit') = 'off', 'synchronous_commit',
        'a crash could undo a published event; set it to on for this role and database'),
    (pg_backend_pid() <> $1, 'transaction_pooler',
        'another backend answers than the one connected to; connect the relay past the pooler'),
    (to_regclass('public.outbox') is null or to_regclass('public.outbox_cursor') is null, 'schema',
        'the tables are missing; run the migrations')
) as problem (found, code, detail)
where found`

const checkTablesSQL = `
select problem.code, problem.detail
from pg_class seq
join pg_sequence s on s.seqrelid = seq.oid
left join pg_attribute x on x.attrelid = 'public.outbox'::regclass and x.attname = 'xid'
left join pg_attribute p on p.attrelid = 'public.outbox'::regclass and p.attname = 'position'
left join pg_attrdef d on d.adrelid = x.attrelid and d.adnum = x.attnum
cross join lateral (values
    (x.attnum is null or p.attnum is null or not exists (select from public.outbox_cursor), 'schema',
        'public.outbox lacks a column or public.outbox_cursor its row; run the migrations'),
    (x.attnum > p.attnum, 'column_order', 'xid must stand before position; create the table as the migrations do'),
    (coalesce(pg_get_expr(d.adbin, d.adrelid), '') <> 'pg_current_xact_id()', 'xid_default',
        'the default of xid must be pg_current_xact_id(); restore it'),
    (case when p.attnum is not null then pg_get_serial_sequence('public.outbox', 'position')
        is distinct from 'public.outbox_position_seq' end, 'sequence',
        'public.outbox_position_seq must fill position; restore it'),
    (s.seqcache <> 1 or s.seqincrement <> 1 or s.seqcycle or s.seqtypid <> 'int8'::regtype, 'sequence',
        'the sequence must have cache 1, increment 1, no cycle and type bigint; alter it'),
    (exists (select from pg_class where relpersistence <> 'p' and (relname = any ('{outbox,outbox_position_seq,` +
	`outbox_cursor,outbox_key,outbox_held,outbox_parked,outbox_discarded,outbox_given_id,outbox_scheduled,outbox_point,` +
	`outbox_lost}')
        and relnamespace = 'public'::regnamespace
        or oid in (select inhrelid from pg_inherits where inhparent = 'public.outbox'::regclass))), 'unlogged',
        'a crash would empty an unlogged table of the outbox; set it logged'),
    (exists (select from pg_subscription_rel where srrelid in (select inhrelid from pg_inherits
        where inhparent = 'public.outbox'::regclass union all select 'public.outbox'::regclass)), 'subscription_target',
        'a subscription writes transaction ids of another server into the outbox; end it')
) as problem (found, code, detail)
where seq.oid = 'public.outbox_position_seq'::regclass and problem.found`
