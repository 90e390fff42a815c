//go:build faults

package inbox_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/inboxtest"
)

type job struct {
	DSN        string
	Consumers  []string
	Partitions [][]event.Event
	Batch      int
	Attempts   int
	Timeout    time.Duration
	CrashAt    string
	CrashHit   int
	Stop       bool   // SIGSTOP there instead of SIGKILL
	KillFor    string // event id
	Slow       bool
	Replay     bool
	AwaitStart bool // print "ready" and begin when stdin ends
}

func init() { crashtest.Child(consume) }

func consume(j job) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, j.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	if j.AwaitStart {
		if err := pool.Ping(ctx); err != nil {
			return err
		}
		fmt.Println("ready")
		if _, err := io.ReadAll(os.Stdin); err != nil {
			return err
		}
	}
	if j.CrashAt != "" {
		fault.ArmNth(j.CrashAt, j.CrashHit, j.crash)
	}
	var consumers errgroup.Group
	for i, name := range j.Consumers {
		consumers.Go(func() error { return j.consumeAs(ctx, pool, name, i == 0) })
	}
	return consumers.Wait()
}

func (j job) consumeAs(ctx context.Context, pool *pgxpool.Pool, consumer string, mayDie bool) error {
	in, err := inbox.New(inbox.Config{
		Consumer: consumer, Pool: pool, Batch: j.Batch, MaxAttempts: j.Attempts, HandlerTimeout: j.Timeout,
		Order: inbox.Strict, RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
		Log:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Host: &inboxtest.Host{OnOutcome: func(_ event.Event, o inbox.Outcome) { fmt.Println(o) }},
	})
	if err != nil {
		return err
	}
	next := j.handlers(consumer, mayDie).HandleMessage
	if j.Replay {
		err := inbox.NewReplayer(in, next).Replay(ctx, deadletter.Filter{}, inbox.Options{Change: audit.Change{By: "child"}})
		return err
	}
	var partitions errgroup.Group
	for p, events := range j.Partitions {
		partitions.Go(func() error { return j.handleAll(ctx, in.BatchMiddleware(next), int32(p), events) })
	}
	if err := partitions.Wait(); err != nil {
		return err
	}
	return in.Close(ctx)
}

func (j job) handlers(consumer string, mayDie bool) *inbox.Mux {
	return muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
		if mayDie && e.ID == j.KillFor {
			crashtest.Die()
		}
		if j.Slow {
			if _, err := tx.Exec(ctx, `select pg_sleep(0.01)`); err != nil {
				return err
			}
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id, key, version) values ($1, $2, $3)`,
			consumer+" "+e.ID, consumer+" "+e.Key, e.Version)
	})
}

func (j job) handleAll(ctx context.Context, handle inbox.BatchFunc, partition int32, events []event.Event) error {
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		msgs[i] = e.Message()
		msgs[i].SetContext(event.WithOrigin(ctx, event.Origin{
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

func (j job) crash() {
	if j.Stop {
		crashtest.Freeze()
	} else {
		crashtest.Die()
	}
}
