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

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/inboxtest"
)

// job is what a process of its own, this test binary called again, is told to do: consume the events as one partition.
type job struct {
	DSN        string
	Events     []cloudevent.Event
	Batch      int
	Attempts   int
	Timeout    time.Duration
	CrashAt    string               // crash point
	CrashHit   int                  // at which hit
	Stop       bool                 // SIGSTOP there instead of SIGKILL
	Statement  *crashtest.Statement // around which it ends, if any
	KillFor    string               // event id that ends the process that handles it
	KillAt     string               // at this crash point; "": in its handler
	Made       int                  // consume so many made events instead, as a number of partitions
	Partitions int                  // of them, by as many consumers; each event is in one of them
	Consumers  int                  // default 1; the first one is the one that dies
	Count      bool                 // say how many statements it took
	Replay     bool                 // take up all waiting dead letters instead
	AwaitStart bool                 // say "ready" and begin when stdin ends
}

func init() { crashtest.Child(consume) }

// consume is the process's side.
func consume(j job) error {
	ctx := context.Background()
	cfg, err := pgxpool.ParseConfig(j.DSN)
	if err != nil {
		return err
	}
	counted := &statementCount{}
	if j.Count {
		cfg.ConnConfig.Tracer = counted
		defer func() { fmt.Printf("statements %04d\n", counted.n.Load()) }()
	}
	if j.Statement != nil {
		cfg.ConnConfig.Tracer = j.Statement
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	if j.Made > 0 {
		if j.CrashAt != "" {
			fault.ArmNth(j.CrashAt, j.CrashHit, j.crash)
		}
		return j.consumeMade(ctx, pool)
	}
	mux := j.handlers()
	in, err := inbox.New(inbox.Config{
		Consumer: "test", Pool: pool, Batch: j.Batch, MaxAttempts: j.Attempts, HandlerTimeout: j.Timeout, Versioned: true,
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
		Log:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Host: &inboxtest.Host{OnOutcome: func(_ cloudevent.Event, o inbox.Outcome) { fmt.Println(o) }},
	})
	if err != nil {
		return err
	}
	again := replay.Config{Inbox: in, Handler: mux.HandleMessage}
	if _, err := replay.New(again); err != nil {
		return err
	}
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
	if j.Replay {
		replayer, err := replay.New(again)
		if err == nil {
			_, err = replayer.Replay(ctx, operate.Filter{}, replay.Options{By: "child"})
		}
		return err
	}
	handle := in.BatchMiddleware(mux.HandleMessage)
	msgs := make([]*message.Message, len(j.Events))
	for i, e := range j.Events {
		msgs[i] = e.Message()
		msgs[i].SetContext(cloudevent.WithOrigin(cloudevent.WithLogEnd(ctx, int64(len(msgs))), cloudevent.Origin{
			Group: "local.test", Topic: "topic-1", Offset: int64(i), Time: e.Time, Key: []byte(e.Key),
		}))
	}
	for len(msgs) > 0 {
		n := min(j.Batch, len(msgs))
		handled, err := handle(ctx, msgs[:n])
		if err != nil {
			return err
		}
		msgs = msgs[handled:]
	}
	return in.Close(ctx)
}

// handlers have an effect that can be counted, and end the process if they are told to.
func (j job) handlers() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, _ testData) error {
		if e.ID == j.KillFor {
			crashtest.Die()
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id, key, version) values ($1, $2, $3)`,
			e.ID, e.Key, e.Version)
	})
	return mux
}

func (j job) crash() {
	if j.Stop {
		crashtest.Freeze()
	} else {
		crashtest.Die()
	}
}
