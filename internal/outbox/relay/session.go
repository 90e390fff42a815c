package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
)

// statementTimeout ends a statement on this side when the server does not answer any more. The session ends with it.
const statementTimeout = 40 * time.Second

var errNoAnswer = fmt.Errorf("no answer from PostgreSQL in %s", statementTimeout)

// withStatementTimeout bounds statements. A stop does not cut them off: a page that was sent is recorded.
func withStatementTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), statementTimeout, errNoAnswer)
}

// settingsSQL makes a session fit to lead.
//
//   - synchronous_commit: storing the cursor is the barrier behind the writers' commits.
//   - The planner settings: the primary key in order is always right here. A plan made while the table was young would
//     sort the rest of the outbox for each page.
//   - The timeouts: the server ends the session of a leader that hangs, with or without an open transaction. It is not
//     idle while the server sends it a page; tcp_user_timeout ends it then.
const settingsSQL = `
set application_name = 'outbox relay'; set search_path = '';
set synchronous_commit = on;
set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set jit = off;
set plan_cache_mode = force_generic_plan;
set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off;
set lock_timeout = '5s'; set statement_timeout = '30s';
set idle_in_transaction_session_timeout = %[1]d; set idle_session_timeout = %[1]d; set tcp_user_timeout = %[1]d;
listen outbox`

// connect opens a session. It refuses a server or a schema on which events would be lost with a [*outbox.CheckError].
func (r *Relay) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := r.cfg.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect relay: %w", err)
	}
	var refused outbox.CheckError
	err = refused.Ask(ctx, conn, checkServerSQL, conn.PgConn().PID())
	if err == nil && !refused.Has("schema") {
		err = refused.Ask(ctx, conn, checkTablesSQL)
	}
	if err == nil && refused.Err() == nil {
		_, err = conn.Exec(ctx, fmt.Sprintf(settingsSQL, r.cfg.Lease.Milliseconds()))
	}
	if err != nil {
		err = fmt.Errorf("set up session: %w", err)
	}
	if err = cmp.Or(err, refused.Err()); err != nil {
		closeSession(ctx, conn)
		return nil, err
	}
	return conn, nil
}

const closeTimeout = 2 * time.Second

// closeSession lets the server release the leader's lock. The session may be broken already, so its error means
// nothing.
func closeSession(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

var errPooler = errors.New("outbox: another backend answers; the relay needs a direct connection")

// checkServerSQL runs before the settings: it must see synchronous_commit as the writers of this role have it.
// docs/operations.md has a paragraph on each code.
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

// checkTablesSQL is for a database that has the tables.
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
	`outbox_cursor,outbox_key,outbox_held,outbox_parked,outbox_discarded,outbox_given_id,outbox_scheduled}')
        and relnamespace = 'public'::regnamespace
        or oid in (select inhrelid from pg_inherits where inhparent = 'public.outbox'::regclass))), 'unlogged',
        'a crash would empty an unlogged table of the outbox; set it logged'),
    (exists (select from pg_subscription_rel where srrelid in (select inhrelid from pg_inherits
        where inhparent = 'public.outbox'::regclass union all select 'public.outbox'::regclass)), 'subscription_target',
        'a subscription writes transaction ids of another server into the outbox; end it')
) as problem (found, code, detail)
where seq.oid = 'public.outbox_position_seq'::regclass and problem.found`

// lockClass is the advisory lock of the leader's session in this database. The server releases it with the session: at
// once when the process is killed, after the lease when it hangs or is cut off.
const lockClass = 0x74776f62 // "twob"

const lockSQL = `select pg_try_advisory_lock($1)`

// tryLock reports whether this session leads from now on.
func tryLock(ctx context.Context, conn *pgx.Conn) (leads bool, err error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	fault.Here("relay.lock.before")
	if err := conn.QueryRow(ctx, lockSQL, lockClass).Scan(&leads); err != nil {
		return false, fmt.Errorf("try the leader's lock: %w", err)
	}
	fault.Here("relay.lock.after")
	return leads, nil
}

const notifySQL = `select pg_notify('outbox', '')`

// notifyLeader tells the leading session that this process has committed. A full queue of notifications is no reason to
// end the session: the leader also polls.
func (r *Relay) notifyLeader(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	_, err := conn.Exec(ctx, notifySQL)
	if err != nil && conn.IsClosed() {
		return fmt.Errorf("notify the leader: %w", err)
	}
	if err != nil {
		r.cfg.Log.Warn("notify the leader", "error", err)
	}
	return nil
}

// awaitCommit waits for a commit of this process, a notification of another one's, or d. A session that ends during the
// wait is an error.
func (r *Relay) awaitCommit(ctx context.Context, conn *pgx.Conn, d time.Duration) (woken bool, err error) {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	committed := make(chan bool, 1)
	go func() {
		select {
		case <-r.cfg.Wake:
			committed <- true
			stop()
		case <-waiting.Done():
			committed <- false
		}
	}()
	_, err = conn.WaitForNotification(waiting)
	stop()
	woken = <-committed || err == nil
	if conn.IsClosed() {
		return false, fmt.Errorf("wait for notifications: %w", err)
	}
	return woken, nil
}
