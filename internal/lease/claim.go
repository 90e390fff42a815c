package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	runner *Runner
	token  uuid.UUID
	begun  bool

	ctx    context.Context // of the runner's attempt; ends early when the lease is lost
	cancel context.CancelCauseFunc
}

var (
	// ErrStale says that a lease has ended, or that another process has claimed the row. The step changed nothing.
	ErrStale = errors.New("stale_lease")
	// ErrSuperseded says that an effect was skipped because a later one of its key had begun.
	ErrSuperseded = errors.New("superseded")
)

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

// skipError marks an effect that is rightly not carried out.
type skipError struct{ reason string }

func (e *skipError) Error() string { return e.reason }

// Skip is the error of an effect that is rightly not carried out, such as a mail to a blocked recipient. Its row
// becomes skipped with the reason, which must not hold personal data. After [Claim.Begin] it needs the mark of
// [Undone].
func Skip(reason string) error { return &skipError{reason} }

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
// It returns [ErrSuperseded], and the row is done, if the effect has an order ([IntentInOrder]) and comes too
// late.
//
// The lease's time is trusted from before the question was asked, on the local monotonic clock: a process that is
// stopped between the commit and the answer finds its time used up.
func (c *Claim) Begin(ctx context.Context) error {
	r := c.runner
	trusted, cancel := context.WithTimeout(ctx, r.settings.Lease-r.timeout)
	defer cancel()
	var by *int64
	err := r.pool.QueryRow(trusted, beginRow, r.handler, c.EventID, c.token, r.settings.Lease.Seconds()).Scan(&by)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return c.stale("begin")
	case err != nil:
		return fmt.Errorf("begin: %w", err)
	case by != nil:
		return fmt.Errorf("%w: the effect of %s on event %s is behind version %d of its key", ErrSuperseded, r.handler,
			c.EventID, *by)
	case trusted.Err() != nil:
		return fmt.Errorf("begin: too little of the lease is left: %w", trusted.Err())
	}
	c.begun = true
	return nil
}

// step moves a row from some states to another one.
type step struct {
	name              string
	from              []State
	to                State
	reason            string // empty: the row keeps the one that it has
	pause             time.Duration
	uncounted, doubts int // attempts
}

var (
	claimed = []State{Claimed, Submitting}
	begun   = []State{Submitting}
)

// Done records that the effect has happened. also runs in the same transaction and may be nil: it is where an event
// about the effect is added to the outbox. at is the database's clock.
//
// It may be called again after an error, a lost connection for one: what is recorded is recorded once.
func (c *Claim) Done(
	ctx context.Context, also func(ctx context.Context, tx pgx.Tx, c *Claim, at time.Time) error,
) error {
	return pgx.BeginFunc(ctx, c.runner.pool, func(tx pgx.Tx) error {
		at, err := c.move(ctx, tx, step{name: "record done", from: begun, to: Done})
		if err != nil || at == nil || also == nil {
			return err
		}
		return also(ctx, tx, c, *at)
	})
}

// Failed records that the effect will never happen. The reason is kept, so it must not hold personal data.
func (c *Claim) Failed(ctx context.Context, reason string) error {
	_, err := c.move(ctx, c.runner.pool, step{name: "record failure", from: claimed, to: Failed, reason: reason})
	return err
}

// Skipped records that the effect is rightly not carried out. The reason is kept, so it must not hold personal data.
func (c *Claim) Skipped(ctx context.Context, reason string) error {
	_, err := c.move(ctx, c.runner.pool, step{name: "record skip", from: claimed, to: Skipped, reason: reason})
	return err
}

// Retry puts the row back, to be tried again after the pause: the effect has certainly not happened.
func (c *Claim) Retry(ctx context.Context, reason string, pause time.Duration) error {
	_, err := c.move(ctx, c.runner.pool,
		step{name: "put back", from: claimed, to: Pending, reason: reason, pause: pause})
	return err
}

// Release is [Claim.Retry] for an attempt that does not count: it was not made, or no server answered. Without a reason
// the row keeps the one that it has.
func (c *Claim) Release(ctx context.Context, reason string, pause time.Duration) error {
	_, err := c.move(ctx, c.runner.pool,
		step{name: "release", from: claimed, to: Pending, reason: reason, pause: pause, uncounted: 1})
	return err
}

// Uncertain records that the effect may have happened: the row becomes uncertain, or pending again if the policy says
// so and it has attempts left.
func (c *Claim) Uncertain(ctx context.Context, reason string) error {
	settings, to := c.runner.settings, Uncertain
	if settings.OnUncertain == Resend && c.Attempt < settings.MaxAttempts {
		to = Pending
	}
	_, err := c.move(ctx, c.runner.pool,
		step{name: "record doubt", from: begun, to: to, reason: reason, pause: settings.pause(c.Attempt), doubts: 1})
	return err
}

// The row still has the token unless it is another claimant's, and says in which state it was found.
const moveRow = `
with mine as (
    select state from lease where handler = $1 and event_id = $2 and token = $3 for update
), moved as (
    update lease l
    set state = $5, error = case when $5 <> 'done' then coalesce(nullif($6, ''), l.error) end,
        due_at = clock_timestamp() + make_interval(secs => $7), attempts = l.attempts - $8, doubts = l.doubts + $9,
        ended_at = case when $5 <> 'pending' then clock_timestamp() end
    from mine where l.handler = $1 and l.event_id = $2 and mine.state = any($4::text[])
    returning l.ended_at
)
select mine.state, moved.ended_at from mine left join moved on true`

// move takes a step and returns when the row ended. It tells a step whose answer was lost from a lease that was lost:
// if an earlier commit took the step, the row is in its target state and still has the token. Then it returns no time.
func (c *Claim) move(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, s step,
) (at *time.Time, err error) {
	var was State
	err = db.QueryRow(ctx, moveRow, c.runner.handler, c.EventID, c.token, s.from, s.to, s.reason, s.pause.Seconds(),
		s.uncounted, s.doubts).Scan(&was, &at)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && was != s.to && !slices.Contains(s.from, was):
		return nil, c.stale(s.name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return at, nil
}

func (c *Claim) stale(step string) error {
	c.runner.metrics.stale.Inc()
	return fmt.Errorf("%w: %s: the lease of %s on event %s has been lost", ErrStale, step, c.runner.handler,
		c.EventID)
}
