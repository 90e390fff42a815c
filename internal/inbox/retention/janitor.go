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

	"example.com/twinbox/internal/failure"
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

// Janitor makes the inbox's partitions before they are needed and drops them when nothing in them can come again. Any
// number of instances may run; one of them works at a time, by a lease on the database's clock. The work of a round is
// bounded: what is left is done in the next one.
type Janitor struct {
	cfg    Config
	name   string
	gauges map[string]prometheus.Gauge
}

// New checks the configuration and opens nothing.
func New(cfg Config) (*Janitor, error) {
	cfg.Every = cmp.Or(cfg.Every, time.Hour)
	cfg.Lease = cmp.Or(cfg.Lease, 5*time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Pool == nil || cfg.Retention <= 0 || cfg.Every <= 0 || cfg.Lease <= 0 {
		return nil, fmt.Errorf("inbox janitor: retention %s, every %s, lease %s: want more than 0, and a pool",
			cfg.Retention, cfg.Every, cfg.Lease)
	}
	j := &Janitor{cfg: cfg, name: rand.Text(), gauges: map[string]prometheus.Gauge{}}
	for name, help := range gauges {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		if cfg.Registerer != nil {
			if err := cfg.Registerer.Register(gauge); err != nil {
				return nil, fmt.Errorf("register metrics: %w", err)
			}
		}
		j.gauges[name] = gauge
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
	for ctx.Err() == nil {
		round, err := j.Tidy(ctx)
		if err != nil && ctx.Err() == nil {
			j.cfg.Log.ErrorContext(ctx, "inbox not tidied", "error", err)
		}
		j.measure(ctx)
		if j.cfg.OnRound != nil {
			j.cfg.OnRound(round, err)
		}
		_ = failure.Sleep(ctx, j.cfg.Every/10)
	}
	return nil
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

// gauges are the columns of measureInbox, with their help.
var gauges = map[string]string{
	"inbox_table_bytes":              "Size of the inbox with its indexes.",
	"inbox_rows":                     "Rows of the inbox, as the last analyze counted them.",
	"inbox_partitions":               "Partitions of the inbox.",
	"inbox_oldest_partition_seconds": "Time since the end of the oldest partition.",
	"inbox_future_rows":              "Rows of events from beyond the days that have a partition, 10000 at most.",
	"inbox_parked_records":           "Records that wait behind another of their key, 10000 at most.",
	"inbox_janitor_refused":          "1 while nothing is forgotten because it might come again.",
}

const measureInbox = `
select sum(pg_total_relation_size(p.relid))::float8 as inbox_table_bytes,
    sum(greatest(c.reltuples, 0))::float8 as inbox_rows,
    (count(*) filter (where p.isleaf))::float8 as inbox_partitions,
    extract(epoch from clock_timestamp() - min((regexp_match(pg_get_expr(c.relpartbound, c.oid),
        'TO \(''([^'']+)''\)'))[1]::timestamptz) filter (where p.relid <> 'public.inbox_foreign'::regclass))::float8
        as inbox_oldest_partition_seconds,
    (select count(*)::float8 from (select from public.inbox_future limit 10000) f) as inbox_future_rows,
    (select count(*)::float8 from (
        select from public.dead_letter where state = 'waiting' and class = 'parked' limit 10000) d)
        as inbox_parked_records,
    (select refused::int::float8 from public.inbox_janitor) as inbox_janitor_refused
from pg_partition_tree('public.inbox') p join pg_class c on c.oid = p.relid`

// measure reads the gauges. Every instance does, so that each one's metrics are whole, and none keeps saying what was
// true when it led a round itself.
func (j *Janitor) measure(ctx context.Context) {
	rows, _ := j.cfg.Pool.Query(ctx, measureInbox)
	values, err := pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
	if err != nil && ctx.Err() == nil {
		j.cfg.Log.WarnContext(ctx, "inbox not measured", "error", err)
	}
	for name, gauge := range j.gauges {
		if value, known := values[name].(float64); known {
			gauge.Set(value)
		}
	}
}
