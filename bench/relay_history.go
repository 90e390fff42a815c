package main

import (
	"context"
	"errors"
	"fmt"
)

// history is a database in which many events have been published already.
type history struct {
	size   int
	loaded int
	db     *database
	v      *ours
}

// relayHistory measures what came before, and what else runs on the server.
type relayHistory struct {
	*relayBench

	histories []*history
}

// loadSteps fill the histories. Their rows are inserted as rows are, so transaction ids and positions are the server's
// own, and a relay publishes them, to a publisher that takes everything at once: so cursor, landmarks and partitions
// become what they would be after as many events in life.
func (b *relayHistory) loadSteps() []step {
	var steps []step
	for _, size := range b.plan.History {
		h := &history{size: size}
		b.histories = append(b.histories, h)
		for from := 0; from < size; from += b.plan.HistoryChunk {
			rows := min(b.plan.HistoryChunk, size-from)
			steps = append(steps, step{
				name: fmt.Sprintf("load history: %d of %d", from, size), weight: float64(rows) / 100_000,
				run: func(ctx context.Context) error { return b.load(ctx, h, rows) },
			})
		}
	}
	return append(steps, step{name: "vacuum histories", weight: 5, run: b.vacuum})
}

const loadSQL = `
insert into public.outbox (event_id, event_type, source, topic, key, version, occurred_at, payload)
select gen_random_uuid(), $1, $2, 'bench-history', 'member-' || (n % 500), n / 500 + 1, $3, $4
from generate_series($5::bigint, $6::bigint) as n`

const loadBatch = 20_000

func (b *relayHistory) load(ctx context.Context, h *history, rows int) error {
	if h.db == nil {
		var err error
		if h.db, err = b.stage.newDatabase(ctx); err != nil {
			return err
		}
		if h.v, err = newOurs(h.db); err != nil {
			return err
		}
	}
	relay := inBackground(ctx, func(ctx context.Context) error { return h.v.relay(ctx, accepting{}) })
	err := relay.during(ctx, func(ctx context.Context) error {
		for end := h.loaded + rows; h.loaded < end; {
			n := min(loadBatch, end-h.loaded)
			_, err := h.db.Exec(ctx, loadSQL, eventType, eventSource, occurredAt, payload(0), h.loaded, h.loaded+n-1)
			if err != nil {
				return fmt.Errorf("insert history: %w", err)
			}
			h.loaded += n
			h.v.committed()
		}
		return h.v.recorded(ctx)
	})
	return errors.Join(err, relay.stop())
}

// vacuum does at once what autovacuum would otherwise do during the measurement.
func (b *relayHistory) vacuum(ctx context.Context) error {
	for _, h := range b.histories {
		if _, err := h.db.Exec(ctx, "vacuum analyze public.outbox"); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	return nil
}

// behindSteps drain the same backlog behind an empty table, behind each history, and beside a foreign transaction.
func (b *relayHistory) behindSteps(int) []step {
	drain := func(db *database, v variant, id string) func(context.Context) error {
		return func(ctx context.Context) error {
			d, err := b.drain(ctx, db, v, b.plan.Backlog, "")
			if err == nil {
				b.sheet.add(id, d.rate)
			}
			return err
		}
	}
	steps := []step{
		{name: "plain", weight: 5, run: func(ctx context.Context) error {
			return b.withOurs(ctx, func(db *database, v variant) error { return drain(db, v, "history.plain")(ctx) })
		}},
		{name: "foreign transaction", weight: 5, run: func(ctx context.Context) error {
			return b.beside(ctx, func(ctx context.Context) error {
				return b.withOurs(ctx, func(db *database, v variant) error { return drain(db, v, "history.foreign")(ctx) })
			})
		}},
		{name: "stock beside a foreign transaction", weight: b.plan.StallFor.Seconds(), run: func(ctx context.Context) error {
			return b.beside(ctx, b.stall)
		}},
	}
	for _, h := range b.histories {
		steps = append(steps, step{name: fmt.Sprintf("behind %d", h.size), weight: 5, run: func(ctx context.Context) error {
			return drain(h.db, h.v, historyID(h.size, b.plan.History))(ctx)
		}})
	}
	return steps
}

// historyID names a history by its place: the sizes of a quick run are others, the figures are the same.
func historyID(size int, sizes []int) string {
	if size == sizes[len(sizes)-1] {
		return "history.large"
	}
	return "history.small"
}

// beside runs do while a transaction that has written stays open in another database of the server.
func (b *relayHistory) beside(ctx context.Context, do func(context.Context) error) (err error) {
	other, err := b.stage.newDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stage.drop(ctx, other)) }()
	tx, err := other.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin foreign transaction: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	if _, err := tx.Exec(ctx, storeAnswerSQL, "foreign", "key", fingerprint, 201, answer, 60); err != nil {
		return fmt.Errorf("write foreign row: %w", err)
	}
	return do(ctx)
}

// stall counts what stock publishes beside the foreign transaction. Its query waits for the oldest transaction of the
// server, so nothing is expected.
func (b *relayHistory) stall(ctx context.Context) error {
	return b.withStock(ctx, keenPoll, func(db *database, v variant) (err error) {
		topic, err := b.stage.kafka.topic(ctx)
		if err != nil {
			return err
		}
		if err := fill(ctx, db, v, corpus{topic: topic, keys: backlogKeys}, b.plan.StockBacklog); err != nil {
			return err
		}
		l := newLedger(accepting{}, b.plan.StockBacklog)
		relay := inBackground(ctx, func(ctx context.Context) error { return v.relay(ctx, l) })
		watch, cancel := context.WithTimeout(ctx, b.plan.StallFor)
		defer cancel()
		_ = l.wait(watch) // the time is over, or all are out: both are counted below
		count, _ := l.acknowledged()
		b.sheet.add("history.stalled", float64(count)/b.plan.StallFor.Seconds())
		return errors.Join(relay.stop(), b.stage.kafka.remove(topic))
	})
}
