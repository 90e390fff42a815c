package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const beginRow = `
update lease set state = 'submitting', due_at = clock_timestamp() + make_interval(secs => $4)
where handler = $1 and event_id = $2 and token = $3 and state = 'claimed' and due_at > clock_timestamp()`

// Begin is the point of no return: call it right before the step that cannot be taken back, and take the step only when
// it returns nil. It renews the lease, which then outlasts the effect's timeout.
//
// It returns a [*SupersededError], and the row is done, if the effect has an order ([IntentInOrder]) and comes too
// late.
//
// The lease's time is trusted from before the question was asked, on the local monotonic clock: a process that is
// stopped between the commit and the answer finds its time used up.
func (c *Claim) Begin(ctx context.Context) error {
	l := c.leases
	trusted, cancel := context.WithTimeout(ctx, l.settings.Lease-l.timeout)
	defer cancel()
	var err error
	if c.inOrder {
		err = c.beginInOrder(trusted)
	} else {
		err = c.move(trusted, "begin", beginRow, nil, l.settings.Lease.Seconds())
	}
	if err != nil {
		return err
	}
	if trusted.Err() != nil {
		return fmt.Errorf("begin: too little of the lease is left: %w", trusted.Err())
	}
	c.begun = true
	return nil
}

const endDone = `
update lease set state = 'done', ended_at = clock_timestamp(), error = null
where handler = $1 and event_id = $2 and token = $3 and state = 'submitting'
returning ended_at`

const readDone = `
select true from lease where handler = $1 and event_id = $2 and token = $3 and state = 'done'`

// Done records that the effect has happened. also runs in the same transaction and may be nil: it is where an event
// about the effect is added to the outbox. at is the database's clock.
//
// It may be called again after an error, a lost connection for one: what is recorded is recorded once.
func (c *Claim) Done(ctx context.Context, also func(ctx context.Context, tx pgx.Tx, at time.Time) error) error {
	return pgx.BeginFunc(ctx, c.leases.pool, func(tx pgx.Tx) error {
		var at time.Time
		err := tx.QueryRow(ctx, endDone, c.leases.handler, c.EventID, c.token).Scan(&at)
		if errors.Is(err, pgx.ErrNoRows) {
			return c.alreadyDone(ctx, tx)
		}
		if err != nil {
			return fmt.Errorf("record done: %w", err)
		}
		if also == nil {
			return nil
		}
		return also(ctx, tx, at)
	})
}

// alreadyDone tells a commit whose answer was lost from a lease that was lost.
func (c *Claim) alreadyDone(ctx context.Context, tx pgx.Tx) error {
	var done bool
	err := tx.QueryRow(ctx, readDone, c.leases.handler, c.EventID, c.token).Scan(&done)
	if errors.Is(err, pgx.ErrNoRows) {
		return c.stale("record done")
	}
	if err != nil {
		return fmt.Errorf("record done: %w", err)
	}
	return nil
}

const endFailed = `
update lease set state = 'failed', ended_at = clock_timestamp(), error = $4
where handler = $1 and event_id = $2 and token = $3 and state in ('claimed', 'submitting')`

// Failed records that the effect will never happen. The reason is kept, so it must not hold personal data.
func (c *Claim) Failed(ctx context.Context, reason string) error {
	return c.move(ctx, "record failure", endFailed, []State{Failed}, reason)
}

const putBack = `
update lease set state = 'pending', attempts = attempts - $6, error = coalesce($4, error),
                 due_at = clock_timestamp() + make_interval(secs => $5)
where handler = $1 and event_id = $2 and token = $3 and state in ('claimed', 'submitting')`

// Retry puts the row back, to be tried again after the pause: the effect has certainly not happened.
func (c *Claim) Retry(ctx context.Context, reason string, pause time.Duration) error {
	return c.move(ctx, "put back", putBack, []State{Pending}, reason, pause.Seconds(), 0)
}

// Release is [Claim.Retry] for an attempt that does not count: it was not made, or no server answered.
func (c *Claim) Release(ctx context.Context, reason string, pause time.Duration) error {
	var kept *string
	if reason != "" {
		kept = &reason
	}
	return c.move(ctx, "release", putBack, []State{Pending}, kept, pause.Seconds(), 1)
}

const doubtRow = `
update lease
set doubts = doubts + 1, error = $4,
    state = case when $5 and attempts < $6 then 'pending' else 'uncertain' end,
    ended_at = case when $5 and attempts < $6 then null else clock_timestamp() end,
    due_at = clock_timestamp() + make_interval(secs => $7)
where handler = $1 and event_id = $2 and token = $3 and state = 'submitting'`

// Uncertain records that the effect may have happened: the row becomes uncertain, or pending again if the policy says
// so and it has attempts left.
func (c *Claim) Uncertain(ctx context.Context, reason string) error {
	s := c.leases.settings
	return c.move(ctx, "record doubt", doubtRow, []State{Pending, Uncertain},
		reason, s.OnUncertain == Resend, s.MaxAttempts, s.pause(c.Attempt).Seconds())
}

const readStep = `
select true from lease where handler = $1 and event_id = $2 and token = $3 and state = any($4::text[])`

// move takes one step. If an earlier commit took it and its answer was lost, the row is in one of the step's target
// states and still has the token: no other process has claimed it since.
func (c *Claim) move(ctx context.Context, step, sql string, taken []State, args ...any) error {
	row := []any{c.leases.handler, c.EventID, c.token}
	tag, err := c.leases.pool.Exec(ctx, sql, append(row, args...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	if tag.RowsAffected() > 0 {
		return nil
	}
	var isTaken bool
	err = c.leases.pool.QueryRow(ctx, readStep, append(row, taken)...).Scan(&isTaken)
	if errors.Is(err, pgx.ErrNoRows) {
		return c.stale(step)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func (c *Claim) stale(step string) error {
	c.leases.metrics.stale.Inc()
	return &StaleError{Handler: c.leases.handler, EventID: c.EventID, Step: step}
}
