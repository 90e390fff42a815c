package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// inboxRun is one measurement.
type inboxRun struct {
	variant    inboxVariant
	partitions int
	duplicates int    // percent of the records; with 100 the whole topic was processed before
	figure     string // records/s
	wal        string // bytes per record; "": not noted
	profile    string
}

// onFresh runs it on a database of its own.
func (b *inboxBench) onFresh(ctx context.Context, r inboxRun) (err error) {
	db, err := b.stage.copyOf(ctx, inboxTemplate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stage.drop(context.WithoutCancel(ctx), db)) }()
	return b.run(ctx, db, r)
}

// run fills a topic, has the variant consume it into the database, and checks what came of it.
func (b *inboxBench) run(ctx context.Context, db *database, r inboxRun) (err error) {
	rec := b.records(r)
	pool, err := openInboxPool(ctx, db.dsn, r.partitions)
	if err != nil {
		return err
	}
	defer pool.Close()
	if r.duplicates == 100 {
		if err := processBefore(ctx, pool, rec); err != nil {
			return err
		}
	}
	timed := b.writing
	if r.variant.consume != nil {
		timed = b.consuming
	}
	rate, wal, err := timed(ctx, pool, rec, r)
	if err != nil {
		return err
	}
	if err := rec.check(ctx, pool, r.variant); err != nil {
		return fmt.Errorf("wrong result: %w", err)
	}
	b.sheet.add(r.figure, rate)
	if r.wal != "" {
		b.sheet.add(r.wal, float64(wal)/float64(len(rec.numbers)))
	}
	return nil
}

// records lays out a run. Its ids are newer than those of all runs before.
func (b *inboxBench) records(r inboxRun) *records {
	sizes := b.plan.Fast
	if r.variant.slow {
		sizes = b.plan.Slow
	}
	duplicates := r.duplicates
	if duplicates == 100 {
		duplicates = 1 // as the first time
	}
	base := time.Now().UTC().Truncate(time.Millisecond)
	if base.Before(b.newest) {
		base = b.newest
	}
	rec := newRecords(sizes[r.partitions], r.partitions, b.plan.Keys, duplicates, base)
	b.newest = rec.until()
	return rec
}

// openInboxPool is a pool as the services have one, connected.
func openInboxPool(ctx context.Context, dsn string, busy int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read DSN: %w", err)
	}
	cfg.MaxConns = inboxConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	var held []*pgxpool.Conn
	for range min(busy, inboxConns) {
		conn, acquireErr := pool.Acquire(ctx)
		if err = acquireErr; err != nil {
			break
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// processBefore leaves the database as it is when every event of the run was processed.
func processBefore(ctx context.Context, pool *pgxpool.Pool, rec *records) error {
	if err := writeRows(true)(rec)(ctx, pool); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, "insert into "+byHandTable+" (consumer, event_id) select consumer, event_id from "+ownTable)
	if err != nil {
		return fmt.Errorf("copy ids: %w", err)
	}
	return nil
}

// consuming is the timed part with a broker.
func (b *inboxBench) consuming(
	ctx context.Context, pool *pgxpool.Pool, rec *records, r inboxRun,
) (rate float64, wal int64, err error) {
	topic, err := b.stage.kafka.topicOf(ctx, int32(r.partitions))
	if err != nil {
		return 0, 0, err
	}
	if err := rec.produce(ctx, b.stage.brokers, topic); err != nil {
		return 0, 0, err
	}
	ledger := newHandling(rec)
	c := consumption{
		brokers: b.stage.brokers, topic: topic, group: topic + ".group", pool: pool, records: rec, ledger: ledger,
	}
	wal, err = b.measured(ctx, r, func(ctx context.Context) error {
		consumer := inBackground(ctx, func(ctx context.Context) error { return r.variant.consume(ctx, c) })
		err := consumer.during(ctx, ledger.wait)
		return errors.Join(err, consumer.stop())
	})
	return ledger.rate(), wal, errors.Join(err, b.stage.kafka.remove(topic))
}

// writing is the timed part without one.
func (b *inboxBench) writing(
	ctx context.Context, pool *pgxpool.Pool, rec *records, r inboxRun,
) (rate float64, wal int64, err error) {
	write := r.variant.write(rec)
	var took time.Duration
	wal, err = b.measured(ctx, r, func(ctx context.Context) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return write(ctx, pool)
	})
	return float64(rec.events) / took.Seconds(), wal, err
}

// measured runs do on a settled machine and says how much write-ahead log it made.
func (b *inboxBench) measured(
	ctx context.Context, r inboxRun, do func(context.Context) error,
) (wal int64, err error) {
	if err := b.stage.settle(ctx); err != nil {
		return 0, err
	}
	before, err := b.stage.walBytes(ctx)
	if err != nil {
		return 0, err
	}
	stopProfile, err := b.profile.start(r.profile)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(do(ctx), stopProfile()); err != nil {
		return 0, err
	}
	after, err := b.stage.walBytes(ctx)
	return after - before, err
}
