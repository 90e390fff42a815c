package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ThreeDotsLabs/watermill/message"
)

// drainSteps empties a backlog with stock, with ours, and from memory. Stock's query sorts what is left for each of its
// batches, so its rate depends on the backlog: it is measured on the same one, and on a smaller one that suits it.
func (b *relayBench) drainSteps(round int) []step {
	steps := []step{
		{name: "stock, smaller backlog", weight: 3, run: func(ctx context.Context) error {
			return b.withStock(ctx, 0, func(db *database, v variant) error {
				d, err := b.drain(ctx, db, v, b.plan.StockBacklog, "")
				b.noteDrain("stock", d, err)
				return err
			})
		}},
		{name: "ours", weight: 5, run: func(ctx context.Context) error {
			return b.withOurs(ctx, func(db *database, v variant) error {
				d, err := b.drain(ctx, db, v, b.plan.Backlog, b.profileName(round, "ours"))
				b.noteDrain("ours", d, err)
				return err
			})
		}},
		{name: "ceiling", weight: 3, run: func(ctx context.Context) error {
			rate, err := b.ceiling(ctx, b.plan.Backlog, b.profileName(round, "ceiling"))
			if err == nil {
				b.sheet.add("drain.ceiling", rate)
			}
			return err
		}},
	}
	if round < stockRounds {
		steps = append(steps, b.stockOnTheSame())
	}
	return steps
}

// stockRounds is in how many rounds stock drains what ours drains. It takes longer than all the rest of a round, and is
// only shown beside the smaller backlog, which ours is compared with.
const stockRounds = 3

func (b *relayBench) stockOnTheSame() step {
	return step{
		name: "stock, same backlog", weight: float64(b.plan.Backlog) / 4000,
		run: func(ctx context.Context) error {
			return b.withStock(ctx, 0, func(db *database, v variant) error {
				d, err := b.drain(ctx, db, v, b.plan.Backlog, "")
				if err == nil {
					b.sheet.add("drain.stock.same", d.rate)
				}
				return err
			})
		},
	}
}

func (b *relayBench) profileName(round int, name string) string {
	if b.last(round) {
		return name
	}
	return ""
}

// drained is what draining a backlog took.
type drained struct {
	rate       float64 // events/s, from the relay's start to the last acknowledgement
	statements float64 // per event
	wal        float64 // bytes per event
}

func (b *relayBench) noteDrain(name string, d drained, err error) {
	if err != nil {
		return
	}
	b.sheet.add("drain."+name, d.rate)
	b.sheet.add("cost.statements.relay."+name, d.statements)
	b.sheet.add("cost.wal.relay."+name, d.wal)
}

// drain writes a backlog, then starts the relay and waits until the broker has everything. Connecting the relay counts,
// connecting the publisher does not. Afterwards the topic is read back.
func (b *relayBench) drain(
	ctx context.Context, db *database, v variant, events int, profile string,
) (d drained, err error) {
	topic, err := b.stage.kafka.topic(ctx)
	if err != nil {
		return d, err
	}
	ours, is := v.(*ours)
	b.drains++
	c := corpus{topic: topic, keys: backlogKeys, traced: is && ours.traced, series: b.drains}
	if err := fill(ctx, db, v, c, events); err != nil {
		return d, err
	}
	// How often Go collects its garbage depends on what is alive. The ceiling cannot do without the records in memory,
	// so all drains have them there.
	alive := c.envelopes(events)
	defer runtime.KeepAlive(alive)
	if _, err := db.Exec(ctx, "analyze"); err != nil { // as autovacuum would have: stock's plan depends on it
		return d, fmt.Errorf("analyze: %w", err)
	}
	publisher, err := b.stage.connect(v.publisher)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	if err := b.stage.settle(ctx); err != nil {
		return d, err
	}
	if d, err = b.timeDrain(ctx, v, newLedger(publisher, events), profile); err != nil {
		return d, err
	}
	err = b.stage.kafka.verify(ctx, topic, events)
	return d, errors.Join(err, b.stage.kafka.remove(topic))
}

// timeDrain is the timed part.
func (b *relayBench) timeDrain(ctx context.Context, v variant, l *ledger, profile string) (d drained, err error) {
	walBefore, err := b.stage.walBytes(ctx)
	if err != nil {
		return d, err
	}
	statementsBefore, events := v.statements(), len(l.at)
	stopProfile, err := b.profile.start(profile)
	if err != nil {
		return d, err
	}
	l.began = time.Now()
	relay := inBackground(ctx, func(ctx context.Context) error { return v.relay(ctx, l) })
	err = relay.during(ctx, l.wait)
	err = errors.Join(err, stopProfile())
	if err == nil {
		err = relay.during(ctx, v.recorded)
	}
	statements := v.statements() - statementsBefore
	if err = errors.Join(err, relay.stop()); err != nil {
		return d, err
	}
	walAfter, err := b.stage.walBytes(ctx)
	_, last := l.acknowledged()
	return drained{
		rate:       float64(events) / last.Seconds(),
		statements: float64(statements) / float64(events),
		wal:        float64(walAfter-walBefore) / float64(events),
	}, err
}

// fillBatch is how many events of a backlog share a transaction.
const fillBatch = 100

// fill writes events 0 to n-1, in order, on one connection.
func fill(ctx context.Context, db *database, v variant, c corpus, n int) error {
	numbers := make([]int, 0, fillBatch)
	for from := 0; from < n; from += fillBatch {
		numbers = numbers[:0]
		for i := from; i < min(from+fillBatch, n); i++ {
			numbers = append(numbers, i)
		}
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return v.write(ctx, tx, c, numbers...) })
		if err != nil {
			return fmt.Errorf("write backlog: %w", err)
		}
	}
	return nil
}

// ceiling publishes the same records from memory: the same publisher, calls of the same size, one after the other, as a
// relay has to that keeps the order. No relay can be faster with this publisher.
func (b *relayBench) ceiling(ctx context.Context, events int, profile string) (rate float64, err error) {
	topic, err := b.stage.kafka.topic(ctx)
	if err != nil {
		return 0, err
	}
	publisher, err := b.stage.connect((*ours)(nil).publisher)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	c := corpus{topic: topic, keys: backlogKeys}
	list := c.envelopes(events)
	if err := b.stage.settle(ctx); err != nil {
		return 0, err
	}
	l := newLedger(publisher, events)
	stopProfile, err := b.profile.start(profile)
	if err != nil {
		return 0, err
	}
	for from := 0; from < events && err == nil; from += batchSize {
		page := make([]*message.Message, 0, batchSize) // made page by page, as the relay does
		for _, e := range list[from:min(from+batchSize, events)] {
			page = append(page, e.Message())
		}
		err = l.PublishContext(ctx, topic, page...)
	}
	if err = errors.Join(err, stopProfile()); err != nil {
		return 0, err
	}
	_, last := l.acknowledged()
	err = b.stage.kafka.verify(ctx, topic, events)
	return float64(events) / last.Seconds(), errors.Join(err, b.stage.kafka.remove(topic))
}
