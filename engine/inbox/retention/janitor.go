package retention

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Config says how long a database's inbox remembers. Pool and Retention are required.
type Config struct {
	Pool *pgxpool.Pool
	// Retention is how long an event is remembered, counted from its own time. Whole days are forgotten at once, so
	// it is up to a day more.
	Retention time.Duration
	// Redelivery returns how far back an event may still be delivered again: the longest retention of the topics plus a
	// margin (see [Requirements.Redelivery]). Nothing is forgotten while Retention does not exceed it, or while it fails.
	// Default: nothing is known of redeliveries, and Retention is trusted.
	Redelivery func(context.Context) (time.Duration, error)
	// DaysAhead is for how many days after today there are partitions. Default: 7.
	DaysAhead int
	// Every is the time between two rounds, over all instances together. Default: 1 h.
	Every time.Duration
	// Lease is for how long one instance may work on a round before another takes over. Default: 5 min.
	Lease time.Duration
	// OnRound is called after each look, also one that found nothing to do. Default: nothing.
	OnRound func(Round, error)
	// Log receives what was created and dropped. Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	c.DaysAhead = cmp.Or(c.DaysAhead, 7)
	c.Every = cmp.Or(c.Every, time.Hour)
	c.Lease = cmp.Or(c.Lease, 5*time.Minute)
	if c.OnRound == nil {
		c.OnRound = func(Round, error) {}
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Pool == nil {
		errs = append(errs, errors.New("inbox janitor: pool is missing"))
	}
	if c.Retention <= 0 || c.Every <= 0 || c.Lease <= 0 || c.DaysAhead < 1 {
		errs = append(errs, fmt.Errorf("inbox janitor: retention %s, every %s, lease %s, %d days ahead: want more than 0",
			c.Retention, c.Every, c.Lease, c.DaysAhead))
	}
	return errors.Join(errs...)
}

// Janitor makes the inbox's partitions before they are needed and drops them when nothing in them can come again. Any
// number of instances may run; one of them works at a time, by a lease on the database's clock. The work of a round is
// bounded: what is left is done in the next one.
type Janitor struct {
	cfg     Config
	name    string
	log     *slog.Logger
	metrics *metrics
}

// New checks the configuration and opens nothing.
func New(cfg Config) (*Janitor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return &Janitor{cfg: cfg, name: rand.Text(), log: cfg.Log, metrics: m}, nil
}

// Round is what one look came to.
type Round struct {
	Led       bool // this instance had the lease and a round was due
	Created   int  // partitions
	Dropped   int  // partitions
	Forgotten int  // rows deleted one by one: foreign ids and misplaced days
	Refused   bool // nothing was forgotten, because it might come again
}

// Run tidies up until ctx ends. A round that fails is logged and tried again a tenth of Every later.
func (j *Janitor) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		round, err := j.Tidy(ctx)
		if err != nil && ctx.Err() == nil {
			j.log.ErrorContext(ctx, "inbox not tidied", "error", err)
		}
		j.measure(ctx)
		j.cfg.OnRound(round, err)
		timer.Reset(j.cfg.Every / 10)
	}
}

// Where nothing is due this changes nothing.
const leadJanitor = `
update public.inbox_janitor
set holder = $1, epoch = epoch + 1, lease_until = clock_timestamp() + $2 * interval '1 microsecond'
where lease_until <= clock_timestamp() and due_at <= clock_timestamp()
returning epoch`

const endRound = `
update public.inbox_janitor
set lease_until = clock_timestamp(), due_at = clock_timestamp() + $2 * interval '1 microsecond', refused = $3
where epoch = $1`

// Tidy does one round if one is due and no other instance is at it.
func (j *Janitor) Tidy(ctx context.Context) (Round, error) {
	var epoch int64
	err := j.cfg.Pool.QueryRow(ctx, leadJanitor, j.name, j.cfg.Lease.Microseconds()).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Round{}, nil
	}
	if err != nil {
		return Round{}, fmt.Errorf("lead janitor: %w", err)
	}
	t := &leasedRound{Janitor: j, epoch: epoch, round: Round{Led: true}}
	err = errors.Join(t.createAhead(ctx), t.forget(ctx))
	next := j.cfg.Every
	if err != nil {
		next /= 10
	}
	if _, endErr := j.cfg.Pool.Exec(ctx, endRound, epoch, next.Microseconds(), t.round.Refused); endErr != nil {
		err = errors.Join(err, fmt.Errorf("end janitor round: %w", endErr))
	}
	return t.round, err
}

// leasedRound is one round under one lease.
type leasedRound struct {
	*Janitor
	epoch int64
	round Round
}

var errDeposed = errors.New("another janitor took over")

const holdLease = `
update public.inbox_janitor set lease_until = clock_timestamp() + $2 * interval '1 microsecond' where epoch = $1`

// change runs what must not be done twice at once in a transaction that holds the lease. It does not wait long for the
// inbox: a change locks a partition or more, and what wants to write meanwhile queues up behind it.
func (r *leasedRound) change(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, holdLease, r.epoch, r.cfg.Lease.Microseconds())
		if err != nil {
			return fmt.Errorf("hold janitor lease: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return errDeposed
		}
		if _, err := tx.Exec(ctx, `set local lock_timeout = '500ms'`); err != nil {
			return fmt.Errorf("limit lock wait: %w", err)
		}
		return do(tx)
	})
}
