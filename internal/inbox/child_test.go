//go:build faults

package inbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
)

// job is what a process of its own, this test binary called again, is told to do: consume the events as one partition.
type job struct {
	DSN        string
	Events     []cloudevent.Event
	Batch      int
	Attempts   int
	Timeout    time.Duration
	CrashAt    string // crash point
	CrashHit   int    // at which hit
	Stop       bool   // SIGSTOP there instead of SIGKILL
	KillFor    string // event id whose handler ends the process
	Tidy       bool   // be a janitor instead, for one round
	AwaitStart bool   // say "ready" and begin when stdin ends
}

const childVariable = "TWINBOX_INBOX_CHILD"

func init() {
	if told := os.Getenv(childVariable); told != "" {
		if err := consume(told); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// consume is the process's side.
func consume(told string) error {
	var j job
	if err := json.Unmarshal([]byte(told), &j); err != nil {
		return err
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, j.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	if j.Tidy {
		return j.tidy(ctx, pool)
	}
	in, err := inbox.New(inbox.Config{
		Consumer: "test", Pool: pool, Batch: j.Batch, MaxAttempts: j.Attempts, HandlerTimeout: j.Timeout, Versioned: true,
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
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
	mux := inbox.NewMux()
	inbox.Handle(mux, testType, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, _ testData) error {
		if e.ID == j.KillFor {
			kill()
		}
		return inbox.Queue(ctx, tx, `insert into ledger (event_id, key, version) values ($1, $2, $3)`,
			e.ID, e.Subject, e.Version)
	})
	handle := in.BatchMiddleware(func(m *message.Message) ([]*message.Message, error) { return nil, mux.HandlerFunc(m) })
	msgs := make([]*message.Message, len(j.Events))
	for i, e := range j.Events {
		msgs[i] = e.Message()
		msgs[i].SetContext(cloudevent.WithOrigin(ctx, cloudevent.Origin{
			Group: "local.test", Topic: "topic-1", Offset: int64(i), Time: e.Time, Key: []byte(e.Subject),
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

func (j job) tidy(ctx context.Context, pool *pgxpool.Pool) error {
	if j.CrashAt != "" {
		fault.ArmNth(j.CrashAt, j.CrashHit, j.crash)
	}
	janitor, err := inbox.NewJanitor(inbox.JanitorConfig{Pool: pool, Retention: day, Lease: time.Millisecond})
	if err != nil {
		return err
	}
	_, err = janitor.Tidy(ctx)
	return err
}

func (j job) crash() {
	if !j.Stop {
		kill()
	}
	fmt.Println("stopping")
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// kill ends the process with no deferred call, no flush, no goodbye.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// child is such a process, seen from the test.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *lockedBuffer
	ended  chan struct{}
	err    error

	mu    sync.Mutex
	lines map[string]chan struct{}
}

func spawn(t *testing.T, j job) *child {
	t.Helper()
	told, err := json.Marshal(j)
	require.NoError(t, err)
	c := &child{
		cmd: exec.Command(os.Args[0], "-test.run=^$"), stderr: &lockedBuffer{}, ended: make(chan struct{}),
		lines: map[string]chan struct{}{},
	}
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(told))
	c.cmd.Stderr = c.stderr
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			close(c.said(scanner.Text()))
		}
		c.err = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Logf("stderr of the child:\n%s", c.stderr)
		}
	})
	return c
}

// said is closed when the process prints the line.
func (c *child) said(line string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines[line] == nil {
		c.lines[line] = make(chan struct{})
	}
	return c.lines[line]
}

func (c *child) wait() error {
	<-c.ended
	return c.err
}
