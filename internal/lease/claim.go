package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// State is the state of a row.
type State string

// The states of a row. Only an operator moves a row out of done, failed, skipped and uncertain.
const (
	Pending    State = "pending"
	Claimed    State = "claimed"
	Submitting State = "submitting"
	Done       State = "done"
	Failed     State = "failed"
	Skipped    State = "skipped"
	Uncertain  State = "uncertain"
)

// Intent is the SQL that adds a handler's intent for an event: $1 is the handler, $2 the event's id. Run it in the
// transaction that records the event. It fails if the intent exists.
const Intent = `insert into lease (handler, event_id) values ($1, $2)`

// ErrStale is the error of a step of a claim that has lost its lease, and the cause of its cancelled context.
var ErrStale = errors.New("stale_lease")

type undoneError struct{ error }

func (e *undoneError) Unwrap() error { return e.error }

// Undone marks an error after [Claim.Begin]: the effect has certainly not happened. It returns nil for nil.
func Undone(err error) error {
	if err == nil {
		return nil
	}
	return &undoneError{err}
}

type skipError struct{ reason string }

func (e *skipError) Error() string { return e.reason }

// Skip returns the error of an effect that must not be carried out. The reason must not contain personal data.
func Skip(reason string) error { return &skipError{reason} }

// Claim is a lease on one row. Only one goroutine may use it at a time.
type Claim struct {
	EventID string
	Attempt int       // counted from 1
	At      time.Time // on the database's clock

	// CorrelationID may be set by the effect, for the log.
	CorrelationID string

	runner *Runner
	token  uuid.UUID
	begun  bool
}

// The clock is in a subquery: an index search takes its result, but not a volatile function.
const claimRow = `
update lease
set state = 'claimed', token = $2, attempts = attempts + 1, due_at = clock_timestamp() + make_interval(secs => $3)
where handler = $1 and event_id = (
    select event_id from lease
    where handler = $1 and state = 'pending' and due_at <= (select clock_timestamp())
    order by due_at limit 1 for update skip locked)
returning event_id, attempts, clock_timestamp()`

// Claim claims the row that has been due the longest; nil if no row is due. ctx does not cancel it: a cancelled claim
// may still happen.
func (r *Runner) Claim(ctx context.Context) (*Claim, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	c := &Claim{runner: r, token: uuid.New()}
	err := r.cfg.Pool.QueryRow(ctx, claimRow, r.cfg.Handler, c.token, r.cfg.Settings.Lease.Seconds()).
		Scan(&c.EventID, &c.Attempt, &c.At)
	isNone := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !isNone {
		err = fmt.Errorf("claim: %w", err)
		r.failing.CompareAndSwap(nil, &claimFailure{time.Now(), err})
		return nil, err
	}
	r.failing.Store(nil)
	if isNone {
		return nil, nil
	}
	return c, nil
}

const renewRow = `
update lease set due_at = clock_timestamp() + make_interval(secs => $4)
where handler = $1 and event_id = $2 and token = $3 and state in ('claimed', 'submitting')`

// renew gives the lease its full time again.
func (c *Claim) renew(ctx context.Context) error { return c.extend(ctx, "renew", renewRow) }

const beginRow = `
update lease set state = 'submitting', due_at = clock_timestamp() + make_interval(secs => $4)
where handler = $1 and event_id = $2 and token = $3 and state = 'claimed' and due_at > clock_timestamp()`

// Begin is the point of no return. Take the step that cannot be taken back only if it returns nil. It renews the lease,
// which then outlasts the effect's timeout, or returns [ErrStale].
//
// The lease's time counts from before the statement: a process that is stopped between commit and answer gets an error.
func (c *Claim) Begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.runner.cfg.Settings.Lease-c.runner.cfg.Timeout)
	defer cancel()
	if err := c.extend(ctx, "begin", beginRow); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("begin: too little of the lease is left: %w", ctx.Err())
	}
	c.begun = true
	return nil
}

func (c *Claim) extend(ctx context.Context, step, sql string) error {
	cfg := c.runner.cfg
	tag, err := cfg.Pool.Exec(ctx, sql, cfg.Handler, c.EventID, c.token, cfg.Settings.Lease.Seconds())
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", step, err)
	case tag.RowsAffected() == 0:
		return c.stale(step)
	}
	return nil
}

type outcome struct {
	result    string
	state     State
	reason    string // must not contain personal data
	pause     time.Duration
	uncounted int // 1: the attempt does not count
	doubts    int // 1: the effect may have happened
}

// An effect that has not begun can be neither done nor uncertain.
const recordOutcome = `
update lease
set state = $4, error = nullif($5, ''), due_at = clock_timestamp() + make_interval(secs => $6),
    attempts = attempts - $7, doubts = doubts + $8,
    ended_at = case when $4 <> 'pending' then clock_timestamp() end
where handler = $1 and event_id = $2 and token = $3
    and (state = 'submitting' or state = 'claimed' and $4 <> 'done' and $8 = 0)
returning coalesce(ended_at, due_at)`

const selectRecorded = `
select exists (select from lease where handler = $1 and event_id = $2 and token = $3 and state = $4)`

// record may be called again after a lost connection: a row with this state and token got them from an earlier call.
func (c *Claim) record(ctx context.Context, o outcome) error {
	cfg := c.runner.cfg
	return pgx.BeginFunc(ctx, cfg.Pool, func(tx pgx.Tx) error {
		var at time.Time
		err := tx.QueryRow(ctx, recordOutcome, cfg.Handler, c.EventID, c.token, o.state, o.reason, o.pause.Seconds(),
			o.uncounted, o.doubts).Scan(&at)
		if err == nil && o.state == Done && cfg.Effect.Done != nil {
			return cfg.Effect.Done(ctx, tx, c, at)
		}
		recorded := err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, selectRecorded, cfg.Handler, c.EventID, c.token, o.state).Scan(&recorded)
		}
		switch {
		case err != nil:
			return fmt.Errorf("record %s: %w", o.state, err)
		case !recorded:
			return c.stale("record " + string(o.state))
		}
		return nil
	})
}

// stale counts no renewal: one may meet the row that was just recorded. Of a lost lease the recording is counted.
func (c *Claim) stale(step string) error {
	if step != "renew" {
		c.runner.metrics.stale.Inc()
	}
	return fmt.Errorf("%w: %s: the lease of %s on event %s has been lost",
		ErrStale, step, c.runner.cfg.Handler, c.EventID)
}
