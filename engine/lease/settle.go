package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// State is where a row is on its way.
type State string

// The states of a row. Only an operator moves a row out of done, failed and uncertain.
const (
	Pending    State = "pending"
	Claimed    State = "claimed"
	Submitting State = "submitting"
	Done       State = "done"
	Failed     State = "failed"
	Uncertain  State = "uncertain"
)

// Swept is a row whose claimant vanished.
type Swept struct {
	EventID string
	State   State // what it is now
}

const sweepRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state = 'submitting' and due_at <= (select clock_timestamp())
    order by due_at limit $2 for update skip locked
)
update lease
set doubts = doubts + 1, token = null, error = 'its claimant vanished after it had begun',
    state = case when $3 and attempts < $4 then 'pending' else 'uncertain' end,
    ended_at = case when $3 and attempts < $4 then null else clock_timestamp() end,
    due_at = clock_timestamp()
where handler = $1 and event_id = any (array(select event_id from ended))
returning event_id, state`

// sweepPage bounds one statement; the next sweep takes the rest.
const sweepPage = 1000

const giveUpRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state = 'claimed' and due_at <= (select clock_timestamp()) and attempts >= $3
    order by due_at limit $2 for update skip locked
)
update lease
set token = null, state = 'failed', ended_at = clock_timestamp(),
    error = format('given up after %s attempts: its claimant vanished before it had begun', attempts)
where handler = $1 and event_id = any (array(select event_id from ended))
returning event_id, state`

// Sweep ends the leases that ran out after the effect had begun: the rows are uncertain, or pending again where the
// policy says so. Those that ran out before are left to the next claim, unless their attempts are used up: they are
// failed, since what ends a process again and again before it begins will end the next one. It touches no others, and
// moves rows of its own handler only.
func (l *Leases) Sweep(ctx context.Context) ([]Swept, error) {
	swept, err := l.sweep(ctx, sweepRows, l.handler, sweepPage, l.settings.OnUncertain == Resend, l.settings.MaxAttempts)
	if err != nil {
		return nil, err
	}
	givenUp, err := l.sweep(ctx, giveUpRows, l.handler, sweepPage, l.settings.MaxAttempts)
	return append(swept, givenUp...), err
}

func (l *Leases) sweep(ctx context.Context, sql string, args ...any) ([]Swept, error) {
	rows, _ := l.pool.Query(ctx, sql, args...)
	swept, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Swept])
	if err != nil {
		return nil, fmt.Errorf("sweep leases: %w", err)
	}
	l.metrics.takeovers.Add(float64(len(swept)))
	return swept, nil
}

// Settled is a row that an operator marks as done.
type Settled struct {
	EventID string
	At      time.Time // the database's clock
}

const rememberRow = `
update lease set state = 'done', ended_at = clock_timestamp(), token = null, error = null
where handler = $1 and event_id = $2 and state <> 'done'`

// Remember records that an effect has happened of which a restored database knows the intent, and not that it was
// done. A row that is not there stays so.
func Remember(ctx context.Context, tx pgx.Tx, handler, eventID string) error {
	if _, err := tx.Exec(ctx, rememberRow, handler, eventID); err != nil {
		return fmt.Errorf("remember effect: %w", err)
	}
	return nil
}
