package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// statementTimeout ends a statement on this side when the server does not answer. The session ends with it.
const statementTimeout = 40 * time.Second

var errNoAnswer = errors.New("PostgreSQL has not answered in time")

// A stop does not cut statements off: a page that was sent is recorded.
func withStatementTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), statementTimeout, errNoAnswer)
}

// settingsSQL makes a session fit to lead.
//
//   - synchronous_commit: storing the cursor is the barrier behind the writers' commits.
//   - The planner settings: a plan made while the table was young would sort the rest of the outbox for each page.
//   - A leader that hangs is not idle while the server sends it a page: tcp_user_timeout ends its session then.
const settingsSQL = `
set application_name = 'outbox relay'; set search_path = '';
set synchronous_commit = on;
set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set jit = off;
set plan_cache_mode = force_generic_plan;
set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off;
set lock_timeout = '5s'; set statement_timeout = '30s';
set idle_in_transaction_session_timeout = %[1]d; set idle_session_timeout = %[1]d; set tcp_user_timeout = %[1]d`

func (r *Relay) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := r.cfg.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect relay: %w", err)
	}
	if err := checkServer(ctx, conn); err != nil {
		closeSession(ctx, conn)
		return nil, err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(settingsSQL, r.cfg.Lease.Milliseconds())); err != nil {
		closeSession(ctx, conn)
		return nil, fmt.Errorf("set up session: %w", err)
	}
	return conn, nil
}

const closeTimeout = 2 * time.Second

func closeSession(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

var errPooler = errors.New("outbox: another backend answers; the relay needs a direct connection")

const lockClass = 0x74776f62 // "twob"

const lockSQL = `select pg_try_advisory_lock($1)`

func tryLock(ctx context.Context, conn *pgx.Conn) (leads bool, err error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	if err := conn.QueryRow(ctx, lockSQL, lockClass).Scan(&leads); err != nil {
		return false, fmt.Errorf("try the leader's lock: %w", err)
	}
	return leads, nil
}

type notification struct {
	cursor string // the version of the cursor's row then
	at     time.Time
	isDue  bool
}

const notifySQL = `
select version, case when version <> $1 or $2 then pg_notify('outbox', '')::text = '' else false end
from (select xmin::text as version from public.outbox_cursor) c`

// A frozen leader gets no notification. A full queue of them does not end the session: the leader also polls.
func (r *Relay) notifyLeader(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	var version string
	var sent bool
	err := conn.QueryRow(ctx, notifySQL, r.notified.cursor, time.Since(r.notified.at) >= notifyAgain).Scan(&version, &sent)
	if err != nil && conn.IsClosed() {
		return fmt.Errorf("notify the leader: %w", err)
	}
	if err != nil {
		r.cfg.Log.Warn("notify the leader", "error", err)
	}
	if sent || err != nil {
		r.notified = notification{cursor: version, at: time.Now()}
	}
	return nil
}

const listenSQL = `listen outbox`

// listen is for the leader alone: a session keeps all notifications that are not taken.
func (l *leader) listen(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	if _, err := l.conn.Exec(ctx, listenSQL); err != nil {
		return fmt.Errorf("listen to commits: %w", err)
	}
	return nil
}

// forgetNotifications drops those that came with the answers to other statements: the next poll sees their commits.
func (l *leader) forgetNotifications() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		if _, err := l.conn.WaitForNotification(ended); err != nil { // there is none
			return
		}
	}
}

// A session that ends during the wait is an error.
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
