//go:build faults

package inbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/crashtest"
)

// made are n events that a child makes for itself: so many do not fit into what it is told.
func made(n int) []cloudevent.Event {
	events := make([]cloudevent.Event, n)
	for i := range events {
		events[i] = v(fmt.Sprintf("key-%d", i%7), int64(i/7+1))
		events[i].ID = fmt.Sprintf("01940000-0000-7000-8000-%012d", i)
	}
	return events
}

// statementCount counts what is sent to the database.
type statementCount struct{ n atomic.Int64 }

func (c *statementCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*statementCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *statementCount) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*statementCount) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*statementCount) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// deathRow makes the batches of all partitions be in flight when the process ends, as far as the inbox lets them.
type deathRow struct {
	job     job
	loops   int
	arrived chan struct{} // one for each loop that is in a handler
}

// gathering is how long the one that dies waits for the others, and they for it: those that are kept apart do not come.
const gathering = 300 * time.Millisecond

// handle is the handler of a consumer.
func (d *deathRow) handle(consumer string) *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, _ testData) error {
		fmt.Println("handling", consumer, e.ID)
		dies := e.ID == d.job.KillFor && consumer == "test"
		if d.loops > 1 {
			d.gather(ctx, dies)
		}
		if dies {
			d.die()
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id, key, version) values ($1, $2, $3)`,
			consumer+" "+e.ID, consumer+" "+e.Key, e.Version)
	})
	return mux
}

func (d *deathRow) gather(ctx context.Context, dies bool) {
	limit := time.NewTimer(gathering)
	defer limit.Stop()
	if !dies {
		select {
		case d.arrived <- struct{}{}:
			select {
			case <-limit.C:
			case <-ctx.Done():
			}
		default: // all places are taken: the loop was here before
		}
		return
	}
	for range d.loops - 1 {
		select {
		case <-d.arrived:
		case <-limit.C:
			return
		}
	}
}

func (d *deathRow) die() {
	if d.job.KillAt == "" {
		crashtest.Die()
	}
	fault.Arm("inbox.test."+d.job.KillAt, crashtest.Die)
}

// consumeMade consumes the made events, a loop for each partition of each consumer.
func (j job) consumeMade(ctx context.Context, pool *pgxpool.Pool) error {
	consumers, partitions := max(1, j.Consumers), max(1, j.Partitions)
	loopCount := consumers * partitions
	d := &deathRow{job: j, loops: loopCount, arrived: make(chan struct{}, loopCount)}
	logs := make([][]cloudevent.Event, partitions)
	for i, e := range made(j.Made) { // the keys stay together
		logs[i%7%partitions] = append(logs[i%7%partitions], e)
	}
	var loops errgroup.Group
	boxes := make([]*inbox.Inbox, consumers)
	for c := range consumers {
		name := "test"
		if c > 0 {
			name = fmt.Sprintf("test-%d", c)
		}
		var err error
		boxes[c], err = inbox.New(inbox.Config{
			Consumer: name, Pool: pool, Batch: j.Batch, MaxAttempts: j.Attempts, HandlerTimeout: j.Timeout, Versioned: true,
			RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
		if err != nil {
			return err
		}
		handle := boxes[c].BatchMiddleware(d.handle(name).HandleMessage)
		for p, log := range logs {
			loops.Go(func() error { return j.loop(ctx, handle, int32(p), log) })
		}
	}
	if err := loops.Wait(); err != nil {
		return err
	}
	for _, box := range boxes {
		if err := box.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// loop hands over a partition, batch by batch.
func (j job) loop(ctx context.Context, handle inbox.BatchFunc, partition int32, log []cloudevent.Event) error {
	ctx = cloudevent.WithLogEnd(ctx, int64(len(log)))
	msgs := make([]*message.Message, len(log))
	for i, e := range log {
		msgs[i] = e.Message()
		msgs[i].SetContext(cloudevent.WithOrigin(ctx, cloudevent.Origin{
			Group: "local.test", Topic: "topic-1", Partition: partition, Offset: int64(i), Time: e.Time, Key: []byte(e.Key),
		}))
	}
	for len(msgs) > 0 {
		handled, err := handle(ctx, msgs[:min(j.Batch, len(msgs))])
		if err != nil {
			return err
		}
		msgs = msgs[handled:]
	}
	return nil
}
