package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
)

// A test binary with this variable, a childConfig, is a relay process.
const childVariable = "TWINBOX_TEST_OUTBOX_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := playRelay(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = flag.Set("rapid.checks", "20") // each is dozens of transactions; make test-long has more
	kafkatest.Main(m)
}

type childConfig struct {
	DSN       string
	Wire      string
	Point     string
	Nth       int
	Stop      bool // until a SIGCONT
	Until     int  // it ends after so many different events
	Fail      []string
	Late      int
	Log       bool
	Lease     time.Duration
	Statement *crashtest.Statement
}

func playRelay(text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.Point != "" {
		how := crashtest.Die
		if c.Stop {
			how = crashtest.Freeze
		}
		armNth(c.Point, c.Nth, how)
	}
	r, err := c.newRelay(ctx, cancel, os.Stderr)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// startHere starts the relay in this process: it is cheaper, and cannot be killed.
func (c childConfig) startHere(t testing.TB) running {
	t.Helper()
	r, err := c.newRelay(t.Context(), func() {}, testWriter{t})
	require.NoError(t, err)
	return startRelayOf(t, r)
}

func (c childConfig) newRelay(ctx context.Context, done func(), log io.Writer) (*Relay, error) {
	broker := &fileBroker{path: c.Wire, until: c.Until, done: done, failOnce: map[string]bool{}}
	if c.Late > 0 {
		broker.first = sync.OnceValue(func() error { return commitLate(ctx, c.DSN, c.Late) })
	}
	for _, key := range c.Fail {
		broker.failOnce[key] = true
	}
	cfg := childRelayConfig(broker)
	if c.Log {
		cfg.Publisher, cfg.Topics = &fileLog{broker}, []string{testTopic}
		cfg.pointEvery, cfg.lookAgain, cfg.landWithin = time.Nanosecond, time.Millisecond, time.Millisecond
	}
	var err error
	if cfg.Scheduled, err = outbox.New(outbox.Config{}); err != nil {
		return nil, err
	}
	session, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	if c.Statement != nil {
		session.Tracer = c.Statement.Tracer()
	}
	cfg.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, session) }
	if c.Lease > 0 {
		cfg.Lease, cfg.PublishTimeout, cfg.MaxSilence = c.Lease, c.Lease/2, c.Lease
	}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	return New(cfg)
}

func childRelayConfig(p message.Publisher) Config {
	return Config{
		Publisher: p, BatchSize: crashPage,
		pollMin: time.Millisecond, PollMax: 5 * time.Millisecond,
		Lease: testLease, PublishTimeout: testLease / 3, MaxSilence: testLease,
		retryMin: time.Millisecond, retryMax: 10 * time.Millisecond,
		parkedRetryMax: 10 * time.Millisecond, attempts: 1, patience: time.Nanosecond,
		PartitionSize: 8, maintainEvery: 20 * time.Millisecond,
	}
}

// fileBroker appends a call's records in one write: a record in the file was accepted, even if the process then dies.
type fileBroker struct {
	path     string
	until    int
	done     func()
	failOnce map[string]bool
	first    func() error
}

const lateSQL = `
insert into public.outbox (event_id, event_type, source, topic, key, version, data_schema, occurred_at, payload)
select gen_random_uuid(), 'com.example.test.happened.v1', '/twinbox/test', 'test.events.v1', 'late-' || n, 1, '', now(),
    '{}'
from generate_series(1, $1::int) as n
where not exists (select from public.outbox where key like 'late-%')`

func commitLate(ctx context.Context, dsn string, n int) error {
	conn, err := pgx.Connect(context.WithoutCancel(ctx), dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(context.WithoutCancel(ctx), lateSQL, n)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

func (b *fileBroker) Publish(topic string, msgs ...*message.Message) error {
	if b.first != nil {
		if err := b.first(); err != nil {
			return err
		}
	}
	failed := map[int]error{}
	for i, m := range msgs {
		key := m.Metadata[event.KeyMetadata]
		if b.failOnce[key] {
			failed[i] = errors.New("once")
		}
	}
	for i := range failed {
		delete(b.failOnce, msgs[i].Metadata[event.KeyMetadata])
	}
	partial := &partialError{Failed: failed}
	partial.HoldBack(msgs)
	var lines strings.Builder
	for i, m := range msgs {
		if failed[i] == nil {
			e := entryOf(topic, m)
			fmt.Fprintf(&lines, "%s %s %s %d\n", e.Topic, e.Key, e.ID, e.Version)
		}
	}
	if err := appendTo(b.path, lines.String()); err != nil {
		return err
	}
	wire, err := readWire(b.path)
	if err != nil {
		return err
	}
	if b.until > 0 && distinct(wire) >= b.until {
		b.done()
	}
	if len(failed) > 0 {
		return partial
	}
	return nil
}

func (b *fileBroker) Close() error { return nil }

// fileLog is a readable fileBroker. A record's time is its offset.
type fileLog struct{ *fileBroker }

func (b *fileLog) path() string { return b.fileBroker.path + ".log" }

func (b *fileLog) PublishAcked(_ context.Context, topic string, msgs ...*message.Message) (bool, error) {
	records, err := b.records()
	if err != nil {
		return false, err
	}
	err = b.Publish(topic, msgs...)
	var partial *partialError
	if err != nil && !errors.As(err, &partial) {
		return false, err
	}
	var lines strings.Builder
	for i, m := range msgs {
		if partial != nil && partial.Failed[i] != nil {
			continue
		}
		text, err := json.Marshal(map[string]any{"UUID": m.UUID, "Metadata": m.Metadata, "Payload": []byte(m.Payload)})
		if err != nil {
			return false, err
		}
		fmt.Fprintf(&lines, "%s\n", text)
		m.SetContext(event.WithOrigin(m.Context(), placeInFile(topic, len(records))))
		records = append(records, m)
	}
	return false, errors.Join(err, appendTo(b.path(), lines.String()))
}

func placeInFile(topic string, offset int) event.Origin {
	return event.Origin{Topic: topic, Offset: int64(offset), Time: time.UnixMilli(int64(offset) + 1)}
}

func (b *fileLog) records() (records []*message.Message, err error) {
	text, err := os.ReadFile(b.path())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		var m message.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, err
		}
		m.SetContext(event.WithOrigin(context.Background(), placeInFile(testTopic, len(records))))
		records = append(records, &m)
	}
	return records, err
}

func (*fileLog) PartitionOf(string, int32) int32 { return 0 }

func (b *fileLog) EachEnd(_ context.Context, topics []string, each func(string, int32, int64, int64, error)) error {
	records, err := b.records()
	for _, topic := range topics {
		each(topic, 0, 0, int64(len(records)), nil)
	}
	return err
}

func (b *fileLog) ReadLog(_ context.Context, _ string, _ int32, from, to int64) ([]*message.Message, error) {
	records, err := b.records()
	return records[min(from, int64(len(records))):min(to, int64(len(records)))], err
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func readWire(path string) ([]entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var wire []entry
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if _, err := fmt.Sscan(lines.Text(), &e.Topic, &e.Key, &e.ID, &e.Version); err != nil {
			return nil, err
		}
		wire = append(wire, e)
	}
	return wire, nil
}

type child struct {
	*exec.Cmd
	done chan struct{}
}

func startChild(t testing.TB, c childConfig) *child {
	t.Helper()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(path, "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = testWriter{t}
	require.NoError(t, cmd.Start())
	ch := &child{Cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(ch.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ch.done
	})
	return ch
}

func (c *child) await(t testing.TB) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(testTimeout):
		require.FailNow(t, "the relay process does not end")
	}
}

func wirePath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "wire")
}
