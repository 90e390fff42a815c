package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/window"
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
	var e outbox.CheckError // what would lose or double rows
	err = e.Ask(ctx, conn, checkServerSQL, conn.PgConn().PID())
	if err == nil && !e.Has("schema") {
		err = e.Ask(ctx, conn, checkTableSQL, window.CursorName)
	}
	if err == nil && e.Err() == nil {
		_, err = conn.Exec(ctx, settingsSQL)
	}
	if err != nil {
		err = fmt.Errorf("set up session: %w", err)
	}
	if err = cmp.Or(err, e.Err()); err != nil {
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

// checkServerSQL finds what the algorithm cannot work on. It runs before the session's settings are made:
// synchronous_commit is to be seen as the writers of this role and database get it.
const checkServerSQL = `
select code, detail
from (values
    (pg_is_in_recovery(), 'standby', 'the server is in recovery; its snapshots do not list running transactions'),
    (current_setting('server_version_num')::int < 150000, 'server_version',
        current_setting('server_version_num') || ' is older than 15'),
    (current_setting('server_encoding') <> 'UTF8', 'server_encoding',
        current_setting('server_encoding') || ' is not UTF8'),
    (current_setting('synchronous_commit') = 'off', 'synchronous_commit',
        'off: a published event could be undone by a crash'),
    (pg_backend_pid() <> $1, 'transaction_pooler',
        'another backend answers than the one connected to; the relay needs a direct connection'),
    (to_regclass('public.outbox') is null or to_regclass('public.outbox_cursor') is null, 'schema',
        'the tables are missing')
) as problem (found, code, detail)
where found`

// checkTableSQL is for a database that has the tables.
const checkTableSQL = `
select problem.code, problem.detail
from pg_class seq
join pg_sequence s on s.seqrelid = seq.oid
left join pg_attribute x on x.attrelid = 'public.outbox'::regclass and x.attname = 'xid'
left join pg_attribute p on p.attrelid = 'public.outbox'::regclass and p.attname = 'position'
left join pg_attrdef d on d.adrelid = x.attrelid and d.adnum = x.attnum
cross join lateral (values
    (x.attnum is null or p.attnum is null, 'schema', 'public.outbox has no column xid or position'),
    (x.attnum > p.attnum, 'column_order', 'xid must stand before position: defaults are evaluated in column order'),
    (coalesce(pg_get_expr(d.adbin, d.adrelid), '') <> 'pg_current_xact_id()', 'xid_default',
        'the default of xid is not pg_current_xact_id()'),
    (case when p.attnum is not null then pg_get_serial_sequence('public.outbox', 'position')
        is distinct from 'public.outbox_position_seq' end, 'sequence',
        'position is not filled by public.outbox_position_seq'),
    (s.seqcache <> 1, 'sequence_cache', s.seqcache || ': later rows would get lower positions'),
    (s.seqincrement <> 1, 'sequence_increment', s.seqincrement || ' is not 1'),
    (s.seqcycle or s.seqtypid <> 'int8'::regtype, 'sequence_range', 'the sequence cycles or is not a bigint'),
    (exists (select from pg_class where relpersistence <> 'p' and (oid in (seq.oid, 'public.outbox'::regclass,
        'public.outbox_cursor'::regclass, 'public.outbox_key'::regclass, 'public.outbox_held'::regclass,
        'public.outbox_parked'::regclass, 'public.outbox_discarded'::regclass, 'public.outbox_topic'::regclass,
        'public.outbox_given_id'::regclass, to_regclass('public.outbox_scheduled'))
        or oid in (select inhrelid from pg_inherits where inhparent = 'public.outbox'::regclass))), 'unlogged',
        'a table or the sequence would be emptied by a crash'),
    (exists (select from pg_subscription_rel where srrelid in (select inhrelid from pg_inherits
        where inhparent = 'public.outbox'::regclass union all select 'public.outbox'::regclass)), 'subscription_target',
        'a subscription writes other servers'' transaction ids into the outbox'),
    (not exists (select from public.outbox_cursor where name = $1), 'schema', 'public.outbox_cursor has no row ' || $1)
) as problem (found, code, detail)
where seq.oid = 'public.outbox_position_seq'::regclass and problem.found`

// lockClass is the first half of the advisory locks of relays; the second is the epoch.
const lockClass = 0x74776f62 // "twob"

const leadershipSQL = `
select epoch, lease_until - clock_timestamp(),
    case when lock_epoch = epoch then pg_try_advisory_xact_lock_shared($2, (epoch & 2147483647)::int) else false end
from public.outbox_cursor where name = $1`

// leadership is what a follower sees of the relay that leads.
type leadership struct {
	epoch     int64
	remaining time.Duration // of the lease; not positive: none leads
	// ended says that the session which took the lease has ended: the server has let go of its lock. Its process is dead,
	// or alive and without the session; it never leads in this epoch again.
	ended bool
}

// readLeadership takes the leader's lock for the time of the statement, shared with other followers.
func readLeadership(ctx context.Context, conn *pgx.Conn) (leadership, error) {
	var l leadership
	err := conn.QueryRow(ctx, leadershipSQL, window.CursorName, lockClass).Scan(&l.epoch, &l.remaining, &l.ended)
	if err != nil {
		return l, fmt.Errorf("read lease: %w", err)
	}
	return l, nil
}

// session is the connection of a relay, and the lease that it keeps on it while it leads. The leader's goroutine and
// the one that reads ahead share it: pages read on another connection could come from another server.
type session struct {
	mu   sync.Mutex // held for the statements of one call of do
	conn *pgx.Conn
	term *window.Term // nil while it follows
	// answered is when the last statements that succeeded were sent: the session lived then.
	answered atomic.Pointer[time.Time]
}

var errNoAnswer = fmt.Errorf("no answer from PostgreSQL in %s", statementTimeout)

// do runs statements that no other call of do interrupts. They are not to be cut off by a shutdown, which would cost
// the session and what could still be recorded, but by a server that does not answer.
func (s *session) do(ctx context.Context, statements func(context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), statementTimeout, errNoAnswer)
	defer cancel()
	sent := time.Now()
	err := statements(ctx)
	if err == nil {
		s.answered.Store(&sent)
	}
	return err
}

const acquireSQL = `
update public.outbox_cursor
set epoch = epoch + 1, lock_epoch = epoch + 1, leader = $3,
    lease_until = clock_timestamp() + $4 * interval '1 microsecond'
where name = $1 and epoch = $2 and (lease_until <= clock_timestamp() or $5)
returning epoch`

// lockSQL takes the lock of an epoch. If another session has it, the relay leads without it, and followers wait for its
// lease.
const lockSQL = `
update public.outbox_cursor set lock_epoch = null
where name = $1 and epoch = $2 and not pg_try_advisory_lock($3, ($2 & 2147483647)::int)`

// acquire makes this relay the leader after the epoch that it has seen. If that one's lease had not run out, the caller
// knows better: it is its own, or the leader's session has ended. No term begins if another relay was faster, or the
// leader has renewed its lease. The lock of the new epoch is held before the epoch can be seen, so that it is never
// free while the session lives. After an error the session has to be ended: it may hold the lock of an epoch that never
// began.
func (s *session) acquire(ctx context.Context, leader string, lease time.Duration, seen leadership) error {
	fault.Here("relay.acquire.before")
	sent := time.Now()
	t := &window.Term{Lease: lease}
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		row := tx.QueryRow(ctx, acquireSQL, window.CursorName, seen.epoch, leader, lease.Microseconds(), seen.remaining > 0)
		if err := row.Scan(&t.Epoch); err != nil {
			return err
		}
		fault.Here("relay.acquire.in_tx")
		_, err := tx.Exec(ctx, lockSQL, window.CursorName, t.Epoch, lockClass)
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("acquire lease: %w", err)
	}
	fault.Here("relay.acquire.after")
	t.Extended(sent)
	s.term = t
	return nil
}

const releaseSQL = `update public.outbox_cursor set lease_until = 'epoch' where name = $1 and epoch = $2`

// release ends the lease at once, inside of do. Only for a relay that has nothing in flight any more.
func (s *session) release(ctx context.Context) error {
	fault.Here("relay.release.before")
	_, err := s.conn.Exec(ctx, releaseSQL, window.CursorName, s.term.Epoch)
	return err
}

const renewSQL = `
update public.outbox_cursor set lease_until = clock_timestamp() + $3 * interval '1 microsecond'
where name = $1 and epoch = $2`

type execFunc func(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)

// extend extends the lease in the database if the epoch is still ours, also a lease that ran out and was not taken.
func (s *session) extend(ctx context.Context, exec execFunc) error {
	fault.Here("relay.renew.before")
	tag, err := exec(ctx, renewSQL, window.CursorName, s.term.Epoch, s.term.Lease.Microseconds())
	switch {
	case err != nil:
		return fmt.Errorf("renew lease: %w", err)
	case tag.RowsAffected() != 1:
		return window.ErrDeposed
	}
	return nil
}

// renew extends the lease, by one statement: it may stand before each page.
func (s *session) renew(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context) error {
		sent := time.Now()
		err := s.extend(ctx, s.conn.Exec)
		if err == nil {
			s.term.Extended(sent)
		}
		return err
	})
}

// runGuarded runs a transaction, inside of do, only if the epoch is still ours, and keeps a successor out until its
// end. The lease is extended if it commits: one that gives way to another's lock takes the extension back with
// everything else.
func (s *session) runGuarded(ctx context.Context, statements func(pgx.Tx) error) error {
	sent := time.Now()
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if err := s.extend(ctx, tx.Exec); err != nil {
			return err
		}
		return statements(tx)
	})
	if err == nil {
		s.term.Extended(sent)
	}
	return err
}

// proveAfter is how old the last sign of the session may be when something is sent. It is shorter than returnGrace, so
// a leader that lives sends nothing more when a follower takes over after its session; a call may be under way.
const proveAfter = 60 * time.Millisecond

// secureLease makes sure that the lease outlasts the flight to come, and that the session has not ended meanwhile: a
// follower may have taken over, since the leader's lock ends with the session.
func (s *session) secureLease(ctx context.Context, need time.Duration) error {
	answered := s.answered.Load()
	if s.term.Remaining() >= need && answered != nil && time.Since(*answered) < proveAfter {
		return nil
	}
	err := s.renew(ctx)
	if err == nil && s.term.Remaining() < need {
		err = fmt.Errorf("renew lease: took too long, %s of %s left", s.term.Remaining(), s.term.Lease)
	}
	return err
}

// reason is why a leader looks for something to publish.
type reason int

const (
	byTime reason = iota // a poll
	byNotification
	byCommit // of this process
)

// heard says why there is something to publish when a leader that does not rest goes on: by a commit of this process,
// or by a notification, if one has come meanwhile. It does not wait.
func (s *session) heard() (why reason) {
	ended, end := context.WithCancel(context.Background())
	end()
	for why = byCommit; ; why = byNotification {
		if n, _ := s.conn.WaitForNotification(ended); n == nil {
			return why
		}
	}
}

// awaitCommit waits for d, for a notification or for a commit of this process, and says which it was; of both, a
// notification, since another process may have scheduled something. A session that ends meanwhile is an error at once,
// not with the next statement.
func (s *session) awaitCommit(ctx context.Context, wake <-chan struct{}, d time.Duration) (why reason, err error) {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	committed := make(chan reason, 1)
	go func() {
		select {
		case <-wake:
			stop()
			committed <- byCommit
		case <-waiting.Done():
			committed <- byTime
		}
	}()
	_, err = s.conn.WaitForNotification(waiting)
	stopped := waiting.Err() != nil
	stop()
	switch why = <-committed; {
	case err == nil:
		return byNotification, nil
	case stopped && !s.conn.IsClosed():
		return why, nil
	}
	return byTime, fmt.Errorf("wait for notifications: %w", err)
}
