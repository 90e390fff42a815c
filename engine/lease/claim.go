package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Claim is a lease on one row. It is used by one goroutine at a time.
type Claim struct {
	EventID string
	Attempt int       // counted from 1
	At      time.Time // the database's clock when it was claimed

	// CorrelationID may be set by the effect: the log names it beside the event's id.
	CorrelationID string

	leases *Leases
	token  uuid.UUID
	begun  bool
}

// StaleError says that a lease has ended, or that another process has claimed the row. The step changed nothing.
type StaleError struct {
	Handler, EventID string
	Step             string // what was tried
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("stale_lease: %s: the lease of %s on event %s has been lost", e.Step, e.Handler, e.EventID)
}

// SupersededError says that an effect was skipped because a later one of its key had begun.
type SupersededError struct {
	Handler, EventID string
	By               int64 // the version that had begun
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("superseded: the effect of %s on event %s is behind version %d of its key", e.Handler, e.EventID,
		e.By)
}

// undoneError marks a failure after which the effect has certainly not happened.
type undoneError struct{ error }

func (e *undoneError) Unwrap() error { return e.error }

// Undone marks an error that came after [Claim.Begin] as one after which the effect has certainly not happened: the
// other side said no, or cannot have heard. Without the mark such an error leaves the outcome uncertain. It returns nil
// for nil.
func Undone(err error) error {
	if err == nil {
		return nil
	}
	return &undoneError{err}
}

// The row of an intent in order has a key, and the key a row in lease_watermark. There two that begin at once wait for
// one another: the second one sees what the first one has made of it, which the statement's snapshot would not show.
const beginRow = `
with mine as (
    select key, version from lease
    where handler = $1 and event_id = $2 and token = $3 and state = 'claimed' and due_at > clock_timestamp()
    for update
), mark as (
    insert into lease_watermark as w (handler, key, version)
    select $1::text, key, version from mine where key is not null
    on conflict (handler, key) do update set version = greatest(w.version, excluded.version)
    returning w.version
)
update lease l
set state = case when mark.version > l.version then 'done' else 'submitting' end,
    ended_at = case when mark.version > l.version then clock_timestamp() end,
    superseded_by = case when mark.version > l.version then mark.version end,
    due_at = clock_timestamp() + make_interval(secs => $4)
from mine left join mark on true
where l.handler = $1 and l.event_id = $2 and l.token = $3
returning l.superseded_by`

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
	var by *int64
	err := l.pool.QueryRow(trusted, beginRow, l.handler, c.EventID, c.token, l.settings.Lease.Seconds()).Scan(&by)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c.stale("begin")
	case err != nil:
		return fmt.Errorf("begin: %w", err)
	case by != nil:
		return &SupersededError{Handler: l.handler, EventID: c.EventID, By: *by}
	case trusted.Err() != nil:
		return fmt.Errorf("begin: too little of the lease is left: %w", trusted.Err())
	}
	c.begun = true
	return nil
}

const endDone = `
update lease set state = 'done', ended_at = clock_timestamp(), error = null
where handler = $1 and event_id = $2 and token = $3 and state = 'submitting'
returning ended_at`

// Done records that the effect has happened. also runs in the same transaction and may be nil: it is where an event
// about the effect is added to the outbox. at is the database's clock.
//
// It may be called again after an error, a lost connection for one: what is recorded is recorded once.
func (c *Claim) Done(ctx context.Context, also func(ctx context.Context, tx pgx.Tx, at time.Time) error) error {
	return pgx.BeginFunc(ctx, c.leases.pool, func(tx pgx.Tx) error {
		var at time.Time
		err := tx.QueryRow(ctx, endDone, c.leases.handler, c.EventID, c.token).Scan(&at)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return c.checkTaken(ctx, tx, "record done", Done)
		case err != nil:
			return fmt.Errorf("record done: %w", err)
		case also == nil:
			return nil
		}
		return also(ctx, tx, at)
	})
}

const endFailed = `
update lease set state = 'failed', ended_at = clock_timestamp(), error = $4
where handler = $1 and event_id = $2 and token = $3 and state in ('claimed', 'submitting')`

// Failed records that the effect will never happen. The reason is kept, so it must not hold personal data.
func (c *Claim) Failed(ctx context.Context, reason string) error {
	return c.move(ctx, "record failure", endFailed, []State{Failed}, reason)
}

const putBack = `
update lease set state = 'pending', attempts = attempts - $6, error = coalesce(nullif($4, ''), error),
                 due_at = clock_timestamp() + make_interval(secs => $5)
where handler = $1 and event_id = $2 and token = $3 and state in ('claimed', 'submitting')`

// Retry puts the row back, to be tried again after the pause: the effect has certainly not happened.
func (c *Claim) Retry(ctx context.Context, reason string, pause time.Duration) error {
	return c.move(ctx, "put back", putBack, []State{Pending}, reason, pause.Seconds(), 0)
}

// Release is [Claim.Retry] for an attempt that does not count: it was not made, or no server answered. Without a reason
// the row keeps the one that it has.
func (c *Claim) Release(ctx context.Context, reason string, pause time.Duration) error {
	return c.move(ctx, "release", putBack, []State{Pending}, reason, pause.Seconds(), 1)
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

// move takes one step.
func (c *Claim) move(ctx context.Context, step, sql string, targets []State, args ...any) error {
	row := []any{c.leases.handler, c.EventID, c.token}
	tag, err := c.leases.pool.Exec(ctx, sql, append(row, args...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	if tag.RowsAffected() > 0 {
		return nil
	}
	return c.checkTaken(ctx, c.leases.pool, step, targets...)
}

const readStep = `
select true from lease where handler = $1 and event_id = $2 and token = $3 and state = any($4::text[])`

// checkTaken tells a step whose answer was lost from a lease that was lost, after a statement that found no row. If an
// earlier commit took the step, the row is in one of its target states and still has the token: no other process has
// claimed it since.
func (c *Claim) checkTaken(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, step string, targets ...State,
) error {
	var taken bool
	err := db.QueryRow(ctx, readStep, c.leases.handler, c.EventID, c.token, targets).Scan(&taken)
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
