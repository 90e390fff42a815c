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
	if c.Retention <= 0 || c.Every <= 0 || c.Lease <= 0 {
		errs = append(errs, fmt.Errorf("inbox janitor: retention %s, every %s, lease %s: want more than 0",
			c.Retention, c.Every, c.Lease))
	}
	return errors.Join(errs...)
}

// Janitor makes the inbox's partitions before they are needed and drops them when nothing in them can come again. Any
// number of instances may run; one of them works at a time, by a lease on the database's clock. The work of a round is
// bounded: what is left is done in the next one.
type Janitor struct {
	cfg    Config
	name   string
	log    *slog.Logger
	gauges []prometheus.Gauge // in the order of measureInbox
}

// New checks the configuration and opens nothing.
func New(cfg Config) (*Janitor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	j := &Janitor{cfg: cfg, name: rand.Text(), log: cfg.Log}
	if err := j.registerGauges(); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return j, nil
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

// registerGauges makes the gauges that measureInbox reads, in its order.
func (j *Janitor) registerGauges() error {
	var errs []error
	for _, g := range [][2]string{
		{"inbox_table_bytes", "Size of the inbox with its indexes."},
		{"inbox_rows", "Rows of the inbox, as the last analyze counted them."},
		{"inbox_partitions", "Partitions of the inbox."},
		{"inbox_oldest_partition_seconds", "Time since the end of the oldest partition."},
		{"inbox_future_rows", "Rows of events from beyond the days that have a partition, 10000 at most."},
		{"inbox_parked_records", "Records that wait behind another of their key, 10000 at most."},
		{"inbox_janitor_refused", "1 while nothing is forgotten because it might come again."},
	} {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: g[0], Help: g[1]})
		j.gauges = append(j.gauges, gauge)
		if j.cfg.Registerer != nil {
			errs = append(errs, j.cfg.Registerer.Register(gauge))
		}
	}
	return errors.Join(errs...)
}

const measureInbox = `
select sum(pg_total_relation_size(p.relid))::float8, sum(greatest(c.reltuples, 0))::float8,
    (count(*) filter (where p.isleaf))::float8,
    extract(epoch from clock_timestamp() - min((regexp_match(pg_get_expr(c.relpartbound, c.oid),
        'TO \(''([^'']+)''\)'))[1]::timestamptz) filter (where p.relid <> 'public.inbox_foreign'::regclass))::float8,
    (select count(*)::float8 from (select from public.inbox_future limit 10000) f),
    (select count(*)::float8 from (
        select from public.dead_letter where state = 'waiting' and class = 'parked' limit 10000) d),
    (select refused::int::float8 from public.inbox_janitor)
from pg_partition_tree('public.inbox') p join pg_class c on c.oid = p.relid`

// measure reads the gauges. Every instance does, so that each one's metrics are whole, and none keeps saying what was
// true when it led a round itself.
func (j *Janitor) measure(ctx context.Context) {
	values, targets := make([]*float64, len(j.gauges)), make([]any, len(j.gauges))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := j.cfg.Pool.QueryRow(ctx, measureInbox).Scan(targets...); err != nil {
		if ctx.Err() == nil {
			j.log.WarnContext(ctx, "inbox not measured", "error", err)
		}
		return
	}
	for i, value := range values {
		if value != nil {
			j.gauges[i].Set(*value)
		}
	}
}
