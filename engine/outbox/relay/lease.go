package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox/window"
)

// term is one period of leadership. The lease is on the database's clock. This process's clock is only asked how much
// of it is left for sure: it is counted from before the statement that extended it was sent.
type term struct {
	epoch int64
	lease time.Duration
	until time.Time // by this process's monotonic clock, at the earliest
}

var _ window.Term = (*term)(nil)

func (t *term) Epoch() int64             { return t.epoch }
func (t *term) Lease() time.Duration     { return t.lease }
func (t *term) Extended(sent time.Time)  { t.until = sent.Add(t.lease) }
func (t *term) remaining() time.Duration { return time.Until(t.until) }

// lockClass is the first half of the advisory locks of relays; the second is the epoch.
const lockClass = 0x74776f62 // "twob"

const leadershipSQL = `
select epoch, extract(epoch from lease_until - clock_timestamp())::float8,
    case when lock_epoch = epoch then pg_try_advisory_xact_lock_shared($2, (epoch & 2147483647)::int) else false end
from public.outbox_cursor where name = $1`

// neverLed is an epoch that no cursor has.
const neverLed = -1

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
	var seconds float64
	err := conn.QueryRow(ctx, leadershipSQL, window.CursorName, lockClass).Scan(&l.epoch, &seconds, &l.ended)
	if err != nil {
		return l, fmt.Errorf("read lease: %w", err)
	}
	l.remaining = time.Duration(seconds * float64(time.Second))
	return l, nil
}

const acquireSQL = `
update public.outbox_cursor
set epoch = epoch + 1, lock_epoch = epoch + 1, leader = $3,
    lease_until = clock_timestamp() + $4 * interval '1 microsecond'
where name = $1 and epoch = $2 and (lease_until <= clock_timestamp() or $5)
returning epoch`

const lockSQL = `select pg_try_advisory_lock($1, ($2::bigint & 2147483647)::int)`

const notLockedSQL = `update public.outbox_cursor set lock_epoch = null where name = $1 and epoch = $2`

// acquire makes this relay the leader after the epoch that it has seen. If that one's lease had not run out, the caller
// knows better: it is its own, or the leader's session has ended. With nil another relay was faster, or the leader has
// renewed its lease. The lock of the new epoch is held before the epoch can be seen, so that it is never free while the
// session lives. After an error the session has to be ended: it may hold the lock of an epoch that never began.
func acquire(
	ctx context.Context, conn *pgx.Conn, leader string, lease time.Duration, seen leadership,
) (*term, error) {
	fault.Here("relay.acquire.before")
	sent := time.Now()
	t := &term{lease: lease}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		row := tx.QueryRow(ctx, acquireSQL, window.CursorName, seen.epoch, leader, lease.Microseconds(), seen.remaining > 0)
		if err := row.Scan(&t.epoch); err != nil {
			return err
		}
		fault.Here("relay.acquire.in_tx")
		return t.lock(ctx, tx)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	fault.Here("relay.acquire.after")
	t.Extended(sent)
	return t, nil
}

// lock takes the epoch's advisory lock for as long as the session lasts. If another session has it, the relay leads
// without it, and followers wait for its lease.
func (t *term) lock(ctx context.Context, tx pgx.Tx) error {
	var locked bool
	if err := tx.QueryRow(ctx, lockSQL, lockClass, t.epoch).Scan(&locked); err != nil || locked {
		return err
	}
	_, err := tx.Exec(ctx, notLockedSQL, window.CursorName, t.epoch)
	return err
}

const renewSQL = `
update public.outbox_cursor set lease_until = clock_timestamp() + $3 * interval '1 microsecond'
where name = $1 and epoch = $2`

// runGuarded runs a transaction only if the epoch is still ours, and keeps a successor out until its end. It extends
// the lease, also one that ran out and was not taken, if it commits: one that gives way to another's lock takes the
// extension back with everything else.
func (t *term) runGuarded(ctx context.Context, conn *pgx.Conn, do func(pgx.Tx) error) error {
	sent := time.Now()
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := t.extend(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
	if err == nil {
		t.Extended(sent)
	}
	return err
}

// renew extends the lease, by one statement: it may stand before each page.
func (t *term) renew(ctx context.Context, conn *pgx.Conn) error {
	sent := time.Now()
	err := t.extend(ctx, conn)
	if err == nil {
		t.Extended(sent)
	}
	return err
}

func (t *term) extend(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
},
) error {
	fault.Here("relay.renew.before")
	tag, err := db.Exec(ctx, renewSQL, window.CursorName, t.epoch, t.lease.Microseconds())
	switch {
	case err != nil:
		return fmt.Errorf("renew lease: %w", err)
	case tag.RowsAffected() != 1:
		return window.ErrDeposed
	}
	return nil
}

const releaseSQL = `update public.outbox_cursor set lease_until = 'epoch' where name = $1 and epoch = $2`

// release ends the lease at once. Only for a relay that has nothing in flight any more.
func (t *term) release(ctx context.Context, conn *pgx.Conn) error {
	fault.Here("relay.release.before")
	if _, err := conn.Exec(ctx, releaseSQL, window.CursorName, t.epoch); err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}
