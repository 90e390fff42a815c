package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/twinbox/internal/failure"
)

// Config configures a janitor. Pool and Retention are required.
type Config struct {
	Pool *pgxpool.Pool
	// Retention is how long an event is remembered, from its own time, or longer.
	Retention time.Duration
	// Check returns an error while a topic may deliver a forgotten event: then the inbox forgets nothing. Default:
	// Retention is trusted.
	Check func(context.Context) error
	// Every is the time between two rounds. Default: 1 h.
	Every time.Duration
	// Now is the process's clock. Default: time.Now.
	Now func() time.Time
	// Log receives created and dropped days. Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics. Default: none.
	Registerer prometheus.Registerer
}

// Janitor creates and drops the inbox's days. Any number may run: an advisory lock allows one at a time.
type Janitor struct {
	cfg                        Config
	bytes, partitions, refused prometheus.Gauge
}

// New checks the configuration. It does not connect.
func New(cfg Config) (*Janitor, error) {
	cfg.Every = cmp.Or(cfg.Every, time.Hour)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Check == nil {
		cfg.Check = func(context.Context) error { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Pool == nil || cfg.Retention <= 0 || cfg.Every <= 0 {
		return nil, fmt.Errorf("inbox janitor: retention %s, every %s: want more than 0, and a pool",
			cfg.Retention, cfg.Every)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(cfg.Registerer).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &Janitor{
		cfg:        cfg,
		bytes:      gauge("inbox_table_bytes", "Size of the inbox with its indexes."),
		partitions: gauge("inbox_partitions", "Partitions of the inbox."),
		refused:    gauge("inbox_janitor_refused", "1 while nothing is forgotten because it might come again."),
	}, nil
}

// Run works until ctx ends. It repeats a failed round after a tenth of Every.
func (j *Janitor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := j.cfg.Every
		if _, err := j.Tidy(ctx); err != nil && ctx.Err() == nil {
			j.cfg.Log.ErrorContext(ctx, "inbox not tidied", "error", err)
			pause /= 10
		}
		_ = failure.Sleep(ctx, pause)
	}
	return nil
}

// Round counts the changes of one round.
type Round struct {
	Created   int  // partitions
	Dropped   int  // partitions
	Forgotten int  // rows without a day of their own
	Refused   bool // a topic may deliver forgotten events
}

const roundTimeout = 5 * time.Minute

// Tidy does one round, for up to five minutes. The next one does the rest.
func (j *Janitor) Tidy(ctx context.Context) (round Round, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	now, err := j.readClocks(ctx)
	if err != nil {
		return round, err
	}
	err = errors.Join(j.createDays(ctx, now, &round), j.forget(ctx, now, &round), j.measure(ctx))
	return round, err
}

type clocks []time.Time

func (j *Janitor) readClocks(ctx context.Context) (clocks, error) {
	var database time.Time
	if err := j.cfg.Pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&database); err != nil {
		return nil, fmt.Errorf("read the database's clock: %w", err)
	}
	process := j.cfg.Now()
	if apart := process.Sub(database).Abs(); apart > time.Hour {
		j.cfg.Log.WarnContext(ctx, "the clocks of the database and of this process differ",
			"database", database, "process", process)
	}
	return clocks{database, process}, nil
}

const lockJanitor = `
select pg_try_advisory_xact_lock(hashtextextended('inbox/janitor', 0)), set_config('lock_timeout', '500ms', true)`

// done is false if another janitor works. change gives way to other transactions: writers would wait behind it.
func (j *Janitor) change(ctx context.Context, what string, result any, sql string, args ...any) (done bool, err error) {
	err = pgx.BeginFunc(ctx, j.cfg.Pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, lockJanitor).Scan(&done, nil)
		if err == nil && done {
			err = tx.QueryRow(ctx, sql, args...).Scan(result)
		}
		return err
	})
	if err == nil {
		return done, nil
	}
	pgErr, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case pgErr != nil && (pgErr.Code == "55P03" || pgErr.Code == "55006"): // lock_not_available, object_in_use
		j.cfg.Log.WarnContext(ctx, "the inbox is in use, the next round tries again", "change", what)
		return false, nil
	case pgErr != nil && (pgErr.Code == "42P07" || pgErr.Code == "42P01"): // another janitor was faster
		return false, nil
	}
	return false, fmt.Errorf("%s: %w", what, err)
}

const selectSize = `
select sum(pg_total_relation_size(relid))::float8, (count(*) filter (where isleaf))::float8
from pg_partition_tree('public.inbox')`

func (j *Janitor) measure(ctx context.Context) error {
	var bytes, partitions float64
	if err := j.cfg.Pool.QueryRow(ctx, selectSize).Scan(&bytes, &partitions); err != nil {
		return fmt.Errorf("measure inbox: %w", err)
	}
	j.bytes.Set(bytes)
	j.partitions.Set(partitions)
	return nil
}
