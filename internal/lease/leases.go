package lease

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// State is where a row is on its way.
type State string

// The states of a row. Only an operator moves a row out of done, failed, skipped and uncertain.
const (
	Pending    State = "pending"
	Claimed    State = "claimed"
	Submitting State = "submitting"
	Done       State = "done"
	Failed     State = "failed"
	Skipped    State = "skipped" // rightly not carried out: see [Skip]
	Uncertain  State = "uncertain"
)

// Intent is the statement that puts the effect of an event, $2, on the list of a handler, $1: run it in the transaction
// that records the event, so that there is neither an effect of a rolled back event nor an event without its effect. It
// fails on the second intent of a handler for the same event.
const Intent = `insert into lease (handler, event_id) values ($1, $2)`

// Add runs [Intent].
func Add(ctx context.Context, tx pgx.Tx, handler, eventID string) error {
	if _, err := tx.Exec(ctx, Intent, handler, eventID); err != nil {
		return fmt.Errorf("insert intent: %w", err)
	}
	return nil
}

// IntentInOrder is [Intent] for an effect that must not follow one of a later event of its key ($3), such as a state
// that is told to another system: once an effect of a higher version ($4) has begun, this one is skipped, and its row
// is done with that version as superseded_by. A version counts from when its effect begins, also if it then fails.
//
// An effect that has begun is not called back: of two that begin one right after the other, the other side may hear the
// second one first.
const IntentInOrder = `insert into lease (handler, event_id, key, version) values ($1, $2, $3, $4)`

// SKIP LOCKED lets several processes claim side by side; there is no order between rows. A lease that ended before the
// effect began is as good as none; but its row may be what ended the claimant, so it is claimed alone: else its
// neighbours would be claimed with it by the next process, and the next, and never get done. The clock stands in a
// subquery because an index can be searched for its result, not for a volatile function: ten thousand rows that are not
// due cost nothing. The array makes the update look the rows up, however many the planner expects.
const claimRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state = 'claimed' and due_at <= (select clock_timestamp()) and attempts < $5
    order by due_at limit 1 for update skip locked
), due as (
    select event_id from lease
    where handler = $1 and state = 'pending' and due_at <= (select clock_timestamp())
    order by due_at limit case when exists (select from ended) then 0 else $2::bigint end for update skip locked
)
update lease
set state = 'claimed', token = $3, attempts = attempts + 1, due_at = clock_timestamp() + make_interval(secs => $4)
where handler = $1 and event_id = any (array(select event_id from ended union all select event_id from due))
returning event_id, attempts, event_id in (select event_id from ended), clock_timestamp()`

// Claim takes a row whose claimant has lost it before it began, or up to n rows that are due, the longest waiting
// first. Rows whose attempts are used up by claimants that vanished are left to [Runner.Sweep].
func (r *Runner) Claim(ctx context.Context, n int) ([]*Claim, error) {
	token := uuid.New()
	rows, _ := r.pool.Query(ctx, claimRows, r.handler, n, token, r.settings.Lease.Seconds(), r.settings.MaxAttempts)
	claims, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Claim, error) {
		c := &Claim{runner: r, token: token}
		var takenOver bool
		err := row.Scan(&c.EventID, &c.Attempt, &takenOver, &c.At)
		if takenOver {
			r.metrics.takeovers.Inc()
		}
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return claims, nil
}

const renewRows = `
update lease l set due_at = clock_timestamp() + make_interval(secs => $4)
from unnest($2::text[], $3::uuid[]) as held (event_id, token)
where l.handler = $1 and l.event_id = held.event_id and l.token = held.token and l.state in ('claimed', 'submitting')
returning l.event_id`

// Heartbeat renews the leases and returns those that are lost. An error says nothing about any of them.
func (r *Runner) Heartbeat(ctx context.Context, claims ...*Claim) (lost []*Claim, err error) {
	ids, tokens := make([]string, len(claims)), make([]uuid.UUID, len(claims))
	for i, c := range claims {
		ids[i], tokens[i] = c.EventID, c.token
	}
	rows, _ := r.pool.Query(ctx, renewRows, r.handler, ids, tokens, r.settings.Lease.Seconds())
	renewed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c *Claim) bool {
		return slices.Contains(renewed, c.EventID)
	}), nil
}

// Swept is a row whose claimant vanished.
type Swept struct {
	EventID string
	State   State // what it is now
}

const sweepRows = `
with ended as (
    select event_id from lease
    where handler = $1 and state in ('claimed', 'submitting') and due_at <= (select clock_timestamp())
        and (state = 'submitting' or attempts >= $4)
    order by due_at limit $2 for update skip locked
)
update lease
set token = null, due_at = clock_timestamp(),
    state = case when state = 'claimed' then 'failed' when $3 and attempts < $4 then 'pending' else 'uncertain' end,
    doubts = doubts + (state = 'submitting')::int,
    ended_at = case when not $3 or attempts >= $4 then clock_timestamp() end,
    error = case when state = 'submitting' then 'its claimant vanished after it had begun'
        else format('given up after %s attempts: its claimant vanished before it had begun', attempts) end
where handler = $1 and event_id = any (array(select event_id from ended))
returning event_id, state`

// page bounds one statement of [Runner.Sweep], the next one takes the rest, and one transaction of [Runner.Purge].
const page = 1000

// Sweep ends the leases that ran out after the effect had begun: the rows are uncertain, or pending again where the
// policy says so. Those that ran out before are left to the next claim, unless their attempts are used up: they are
// failed, since what ends a process again and again before it begins will end the next one. It touches no others, and
// moves rows of its own handler only.
func (r *Runner) Sweep(ctx context.Context) ([]Swept, error) {
	rows, _ := r.pool.Query(ctx, sweepRows, r.handler, page, r.settings.OnUncertain == Resend, r.settings.MaxAttempts)
	swept, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Swept])
	if err != nil {
		return nil, fmt.Errorf("sweep leases: %w", err)
	}
	for _, s := range swept {
		r.metrics.takeovers.Inc()
		if s.State == Failed {
			r.metrics.attempts.WithLabelValues(string(Failed)).Inc()
			r.log.ErrorContext(ctx, "effect given up: its claimants vanished before they had begun", "event_id", s.EventID)
			continue
		}
		r.metrics.attempts.WithLabelValues(string(Uncertain)).Inc()
		r.log.ErrorContext(ctx, "outcome is uncertain: the claimant vanished after it had begun",
			"event_id", s.EventID, "state", s.State)
	}
	return swept, nil
}

// Each state has an index of its own.
const purgeRows = `
with done as (
    select event_id from lease
    where handler = $1 and state = 'done' and ended_at < clock_timestamp() - make_interval(secs => $2)
    order by ended_at limit $3 for update skip locked
), skipped as (
    select event_id from lease
    where handler = $1 and state = 'skipped' and ended_at < clock_timestamp() - make_interval(secs => $2)
    limit $3 for update skip locked
)
delete from lease
where handler = $1 and event_id = any (array(select event_id from done union all select event_id from skipped))
returning event_id`

// Purge removes rows that have been done or skipped for longer than the retention, a thousand of each per transaction,
// and with them what [Effect.Purged] says. What failed or is uncertain stays: it is a person's to decide. It is safe
// beside other processes' purges, and does nothing without a retention.
func (r *Runner) Purge(ctx context.Context) (err error) {
	purged := 0
	for n := page; err == nil && n >= page && r.settings.Retention > 0; {
		err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, purgeRows, r.handler, r.settings.Retention.Seconds(), page)
			gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if n = len(gone); err != nil || n == 0 || r.effect.Purged == nil {
				return err
			}
			return r.effect.Purged(ctx, tx, gone)
		})
		if err == nil {
			purged += n
		}
	}
	if purged > 0 {
		r.metrics.purged.Add(float64(purged))
		r.log.InfoContext(ctx, "old effects purged", "rows", purged)
	}
	if err != nil {
		return fmt.Errorf("purge leases: %w", err)
	}
	return nil
}

// Settled is a row that an operator marks as done.
type Settled struct {
	EventID string
	At      time.Time // the database's clock
}

// metrics counts what this process does, and describes the gauges of [Runner.Measure].
type metrics struct {
	attempts                 *prometheus.CounterVec
	takeovers, stale, purged prometheus.Counter
	rows, oldest             *prometheus.Desc
}

func newMetrics(registerer prometheus.Registerer, handler string) *metrics {
	labels := prometheus.Labels{"handler": handler}
	factory := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"state"}, labels)
	}
	return &metrics{
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "lease_attempts_total", Help: "Attempts by how they ended.", ConstLabels: labels,
		}, []string{"result"}),
		takeovers: counter("lease_takeovers_total", "Leases of others that had ended, claimed or swept by this process."),
		stale: counter("lease_stale_rejects_total",
			"Steps of this process that changed nothing because its lease was lost."),
		purged: counter("lease_purged_total", "Rows that this process removed because they were done or skipped long ago."),
		rows:   gauge("lease_rows", "Rows that are not done, by state."),
		oldest: gauge("lease_oldest_seconds", "Time since the oldest row of the state was added; 0 if there is none."),
	}
}

// Describe lists the gauges of [Runner.Measure].
func (r *Runner) Describe(out chan<- *prometheus.Desc) {
	out <- r.metrics.rows
	out <- r.metrics.oldest
}

const countRows = `
select states.state, count(l.state)::float8,
       coalesce(greatest(extract(epoch from clock_timestamp() - min(l.added_at)), 0), 0)::float8
from unnest(array['pending', 'claimed', 'submitting', 'failed', 'skipped', 'uncertain']) as states (state)
left join lease l on l.handler = $1 and l.state = states.state and l.state <> 'done'
group by states.state`

// Measure counts the rows of the handler that are not done, by state. It reads the table, so every instance says the
// same:
//
//	lease_rows{handler,state}             how many
//	lease_oldest_seconds{handler,state}   since the oldest of them was added; 0 if there is none
func (r *Runner) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	rows, _ := r.pool.Query(ctx, countRows, r.handler)
	var metrics []prometheus.Metric
	var state string
	var n, age float64
	_, err := pgx.ForEachRow(rows, []any{&state, &n, &age}, func() error {
		metrics = append(metrics, prometheus.MustNewConstMetric(r.metrics.rows, prometheus.GaugeValue, n, state),
			prometheus.MustNewConstMetric(r.metrics.oldest, prometheus.GaugeValue, age, state))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count leases: %w", err)
	}
	return metrics, nil
}
