package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// term is one period of leadership. The lease is on the database's clock. This process's clock is only asked how much
// of it is left for sure: it is counted from before the statement that extended it was sent.
type term struct {
	epoch int64
	lease time.Duration
	until time.Time // by this process's monotonic clock, at the earliest
}

func (t *term) micros() int64            { return t.lease.Microseconds() }
func (t *term) extended(asked time.Time) { t.until = asked.Add(t.lease) }
func (t *term) left() time.Duration      { return time.Until(t.until) }

const acquireSQL = `
update public.outbox_cursor
set epoch = epoch + 1, leader = $2, lease_until = clock_timestamp() + $3 * interval '1 microsecond'
where name = $1 and (lease_until <= clock_timestamp() or epoch = $4)
returning epoch`

// neverLed is an epoch that no cursor has.
const neverLed = -1

// acquire makes this relay the leader if nobody is, or if it was itself the last: while the epoch is the one it had
// (own) nobody has led since, and it need not wait for its own lease. With nil it is a follower still.
func acquire(
	ctx context.Context, conn *pgx.Conn, leader string, lease time.Duration, own int64,
) (*term, error) {
	fault.Here("relay.acquire.before")
	asked := time.Now()
	t := &term{lease: lease}
	err := conn.QueryRow(ctx, acquireSQL, cursorName, leader, lease.Microseconds(), own).Scan(&t.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	fault.Here("relay.acquire.after")
	t.extended(asked)
	return t, nil
}

const renewSQL = `
update public.outbox_cursor set lease_until = clock_timestamp() + $3 * interval '1 microsecond'
where name = $1 and epoch = $2`

// renew extends the lease. A lease that ran out and that nobody took is extended too: the epoch is still ours.
func (t *term) renew(ctx context.Context, conn *pgx.Conn) error {
	asked := time.Now()
	if err := t.repeat(ctx, conn); err != nil {
		return err
	}
	t.extended(asked)
	return nil
}

// within runs a transaction of who still leads, and keeps a successor out until its end. The lease is longer only if it
// commits: one that gives way to somebody's lock takes the extension back with everything else.
func (t *term) within(ctx context.Context, conn *pgx.Conn, do func(pgx.Tx) error) error {
	asked := time.Now()
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := t.repeat(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
	if err == nil {
		t.extended(asked)
	}
	return err
}

// repeat is the statement of both.
func (t *term) repeat(ctx context.Context, q querier) error {
	fault.Here("relay.renew.before")
	tag, err := q.Exec(ctx, renewSQL, cursorName, t.epoch, t.micros())
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return errDeposed
	}
	return nil
}

const releaseSQL = `update public.outbox_cursor set lease_until = 'epoch' where name = $1 and epoch = $2`

// release ends the lease at once. Only for a relay that has nothing in flight any more.
func (t *term) release(ctx context.Context, conn *pgx.Conn) error {
	fault.Here("relay.release.before")
	if _, err := conn.Exec(ctx, releaseSQL, cursorName, t.epoch); err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

const leaseLeftSQL = `
select extract(epoch from lease_until - clock_timestamp())::float8 from public.outbox_cursor where name = $1`

// leaseLeft is how long somebody still may lead; it is not positive if nobody may.
func leaseLeft(ctx context.Context, conn *pgx.Conn) (time.Duration, error) {
	var seconds float64
	if err := conn.QueryRow(ctx, leaseLeftSQL, cursorName).Scan(&seconds); err != nil {
		return 0, fmt.Errorf("read lease: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
