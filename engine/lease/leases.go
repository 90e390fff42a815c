package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Config describes the leases of one handler.
type Config struct {
	Handler    string        // names the effect; one row per handler and event
	Pool       *pgxpool.Pool // of the database that holds the table
	Settings   Settings
	Timeout    time.Duration         // the longest that the effect may take after Begin. Default: half of the lease
	Registerer prometheus.Registerer // default: none
}

// Leases are the rows of one handler and what may be done with them. Any number of processes may have the same.
type Leases struct {
	handler  string
	pool     *pgxpool.Pool
	settings Settings
	timeout  time.Duration
	metrics  *metrics
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Leases, error) {
	settings := cfg.Settings.withDefaults()
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("leases of %s: %w", cfg.Handler, err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = settings.Lease / 2
	}
	if cfg.Handler == "" || cfg.Pool == nil || cfg.Timeout <= 0 || cfg.Timeout >= settings.Lease {
		return nil, errors.New("leases: a handler, a pool and a timeout within the lease are required")
	}
	l := &Leases{handler: cfg.Handler, pool: cfg.Pool, settings: settings, timeout: cfg.Timeout}
	l.metrics = newMetrics(cfg.Registerer, cfg.Handler)
	return l, nil
}

// Claim is a lease on one row. It is used by one goroutine at a time.
type Claim struct {
	EventID string
	Attempt int       // counted from 1
	At      time.Time // the database's clock when it was claimed

	// CorrelationID may be set by the effect: the log names it beside the event's id.
	CorrelationID string

	leases  *Leases
	token   uuid.UUID
	begun   bool
	inOrder bool // of its key
}

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
returning event_id, attempts, event_id in (select event_id from ended), clock_timestamp(), key is not null`

// Claim takes a row whose claimant has lost it before it began, or up to n rows that are due, the longest waiting
// first. Rows whose attempts are used up by claimants that vanished are left to [Leases.Sweep].
func (l *Leases) Claim(ctx context.Context, n int) ([]*Claim, error) {
	token := uuid.New()
	rows, _ := l.pool.Query(ctx, claimRows, l.handler, n, token, l.settings.Lease.Seconds(),
		l.settings.MaxAttempts)
	claims, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Claim, error) {
		c := &Claim{leases: l, token: token}
		var takenOver bool
		err := row.Scan(&c.EventID, &c.Attempt, &takenOver, &c.At, &c.inOrder)
		if takenOver {
			l.metrics.takeovers.Inc()
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
func (l *Leases) Heartbeat(ctx context.Context, claims ...*Claim) (lost []*Claim, err error) {
	ids, tokens := make([]string, len(claims)), make([]uuid.UUID, len(claims))
	for i, c := range claims {
		ids[i], tokens[i] = c.EventID, c.token
	}
	rows, _ := l.pool.Query(ctx, renewRows, l.handler, ids, tokens, l.settings.Lease.Seconds())
	renewed := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { renewed[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	for _, c := range claims {
		if !renewed[c.EventID] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}
