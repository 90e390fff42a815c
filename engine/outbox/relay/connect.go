package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/window"
)

// settingsSQL is what the reading statements rest on:
//
//   - synchronous_commit: storing a window is the barrier behind the writers' commits.
//   - The planner settings: a plan made while the table was young would sort the whole rest of the outbox for each
//     page. The primary key in order is always right here. jit would compile such a plan for its fantasy cost.
//   - The timeouts: a session that hangs must not outlive its leadership for long.
const settingsSQL = `
set application_name = 'outbox relay';
set synchronous_commit = on;
set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set jit = off;
set plan_cache_mode = force_generic_plan;
set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off;
set search_path = '';
set lock_timeout = '5s'; set idle_in_transaction_session_timeout = '10s'; set statement_timeout = '30s'`

// statementTimeout ends a statement on this side when the server cannot be reached any more.
const statementTimeout = 40 * time.Second

const closeTimeout = 2 * time.Second

// connect opens a session, refuses what the algorithm cannot work on with a [*outbox.CheckError], and makes the
// settings.
func connect(ctx context.Context, open func(context.Context) (*pgx.Conn, error)) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := open(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect relay: %w", err)
	}
	err = checkServer(ctx, conn)
	if err == nil {
		if _, err = conn.Exec(ctx, settingsSQL); err != nil {
			err = fmt.Errorf("set up session: %w", err)
		}
	}
	if err != nil {
		closeConn(ctx, conn)
		return nil, err
	}
	return conn, nil
}

// closeConn ends a session that may be broken already, so its error says nothing.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// checkSQL asks everything at once. It runs before the session's settings are made: synchronous_commit is to be seen as
// the writers of this role and database get it.
const checkSQL = `
select pg_is_in_recovery(), current_setting('server_version_num')::int, current_setting('server_encoding'),
    current_setting('synchronous_commit'), pg_backend_pid(), to_regclass('public.outbox') is not null
        and to_regclass('public.outbox_cursor') is not null`

const checkTableSQL = `
select x.attnum < p.attnum, coalesce(pg_get_expr(d.adbin, d.adrelid), '') = 'pg_current_xact_id()',
    s.seqcache, s.seqincrement, s.seqcycle, s.seqtypid = 'int8'::regtype,
    not exists (select from pg_class where relpersistence <> 'p' and (oid in (seq.oid, 'public.outbox'::regclass,
        'public.outbox_cursor'::regclass, 'public.outbox_key'::regclass, 'public.outbox_held'::regclass,
        'public.outbox_parked'::regclass, 'public.outbox_discarded'::regclass, 'public.outbox_topic'::regclass,
        'public.outbox_given_id'::regclass, to_regclass('public.outbox_scheduled'))
        or oid in (select inhrelid from pg_inherits where inhparent = 'public.outbox'::regclass))),
    exists (select from pg_subscription_rel where srrelid in (select inhrelid from pg_inherits
        where inhparent = 'public.outbox'::regclass union all select 'public.outbox'::regclass)),
    exists (select from public.outbox_cursor where name = $1),
    pg_get_serial_sequence('public.outbox', 'position') is not distinct from 'public.outbox_position_seq'
from pg_attribute x
join pg_attribute p on p.attrelid = x.attrelid and p.attname = 'position'
left join pg_attrdef d on d.adrelid = x.attrelid and d.adnum = x.attnum
join pg_class seq on seq.oid = 'public.outbox_position_seq'::regclass
join pg_sequence s on s.seqrelid = seq.oid
where x.attrelid = 'public.outbox'::regclass and x.attname = 'xid'`

// checkServer refuses a server on which rows would be lost or doubled.
func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var (
		e                    outbox.CheckError
		standby, migrated    bool
		version              int
		encoding, syncCommit string
		pid                  uint32
	)
	err := conn.QueryRow(ctx, checkSQL).Scan(&standby, &version, &encoding, &syncCommit, &pid, &migrated)
	if err != nil {
		return fmt.Errorf("check server: %w", err)
	}
	e.RefuseIf(standby, "standby", "the server is in recovery; its snapshots do not list running transactions")
	e.RefuseIf(version < 150000, "server_version", fmt.Sprintf("%d is older than 15", version))
	e.RefuseIf(encoding != "UTF8", "server_encoding", encoding+" is not UTF8")
	e.RefuseIf(syncCommit == "off", "synchronous_commit", "off: a published event could be undone by a crash")
	e.RefuseIf(pid != conn.PgConn().PID(), "transaction_pooler",
		"another backend answers than the one connected to; the relay needs a direct connection")
	e.RefuseIf(!migrated, "schema", "the tables are missing")
	if migrated {
		if err := checkTable(ctx, conn, &e); err != nil {
			return err
		}
	}
	return e.Err()
}

func checkTable(ctx context.Context, conn *pgx.Conn, e *outbox.CheckError) error {
	var (
		order, xidDefault, cycle, wide, logged, subscribed, row, sequence bool
		cache, increment                                                  int64
	)
	err := conn.QueryRow(ctx, checkTableSQL, window.CursorName).Scan(
		&order, &xidDefault, &cache, &increment, &cycle, &wide, &logged, &subscribed, &row, &sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		e.RefuseIf(true, "schema", "public.outbox has no column xid or position")
		return nil
	}
	if err != nil {
		return fmt.Errorf("check outbox table: %w", err)
	}
	e.RefuseIf(!order, "column_order", "xid must stand before position: defaults are evaluated in column order")
	e.RefuseIf(!xidDefault, "xid_default", "the default of xid is not pg_current_xact_id()")
	e.RefuseIf(!sequence, "sequence", "position is not filled by public.outbox_position_seq")
	e.RefuseIf(cache != 1, "sequence_cache", fmt.Sprintf("%d: later rows would get lower positions", cache))
	e.RefuseIf(increment != 1, "sequence_increment", fmt.Sprintf("%d is not 1", increment))
	e.RefuseIf(cycle || !wide, "sequence_range", "the sequence cycles or is not a bigint")
	e.RefuseIf(!logged, "unlogged", "a table or the sequence would be emptied by a crash")
	e.RefuseIf(subscribed, "subscription_target", "a subscription writes other servers' transaction ids into the outbox")
	e.RefuseIf(!row, "schema", "public.outbox_cursor has no row "+window.CursorName)
	return nil
}
