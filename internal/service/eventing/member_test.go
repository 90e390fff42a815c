//go:build faults

package eventing_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

type member struct {
	Environ  []string
	Topic    string
	Consumer string
	At       string
	Nth      int
	Freeze   bool   // instead of dying there
	Poison   string // the event over which it dies
}

func init() { crashtest.Child(member.play) }

const ledgerType = "test.counted.v1"

func (m member) play() error {
	var cfg struct{ eventing.Config }
	if err := config.Load(m.Environ, &cfg); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	group := service.NewGroup(ctx, log, 0)
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: "test", Source: "/test", Config: cfg.Config, Migrations: sets, Log: log,
		Admin:    service.NewAdmin(service.AdminConfig{Log: log, Draining: group.Context().Done(), CheckTimeout: patience}),
		Validate: func(event.Event) error { return nil },
	})
	if err != nil {
		return err
	}
	mux := inbox.NewMux()
	counted := event.Define[struct{}](event.Declaration{Type: ledgerType})
	inbox.Handle(mux, counted, func(ctx context.Context, tx pgx.Tx, e event.Event, _ struct{}) error {
		if e.ID == m.Poison {
			crashtest.Die()
		}
		return inbox.Queue(ctx, tx, `insert into ledger (consumer, event_id, key, version, pid) values ($1, $2, $3, $4, $5)`,
			m.Consumer, e.ID, e.Key, e.Version, os.Getpid())
	})
	err = node.Consume(eventing.Consumer{
		Name: m.Consumer, Topic: m.Topic, Handlers: mux, Order: inbox.Strict,
		OnOutcome: func(_ event.Event, o inbox.Outcome) { fmt.Println(o) },
	})
	if err != nil {
		return err
	}
	if m.At != "" {
		end := crashtest.Die
		if m.Freeze {
			end = crashtest.Freeze
		}
		fault.ArmNth(m.At, m.Nth, end)
	}
	node.StartConsumers(group)
	fmt.Println("started")
	err = group.Wait()
	if closeErr := node.Close(); err == nil {
		err = closeErr
	}
	return err
}

// The ledger has no unique constraint: it must not prevent a second effect.
type stage struct {
	pool   *pgxpool.Pool
	cfg    eventing.Config
	member member
	admin  sarama.ClusterAdmin
	sent   int
	send   func(...event.Event)
}

func newLedger(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t, sets...)
	_, err := pool.Exec(t.Context(), `create table ledger (n bigint generated always as identity, consumer text,
		event_id text, key text, version bigint, pid int)`)
	require.NoError(t, err)
	janitor, err := retention.New(retention.Config{
		Pool: pool, Retention: 240 * time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	_, err = janitor.Tidy(t.Context()) // no member waits for the partitions
	require.NoError(t, err)
	return pool
}

func newStage(t *testing.T, pool *pgxpool.Pool, brokers []string, more ...string) *stage {
	t.Helper()
	variables := append([]string{
		"DATABASE_URL=" + pgtest.DSN(pool), "DATABASE_MAX_CONNECTIONS=8", "KAFKA_BROKERS=" + brokers[0],
		"ENVIRONMENT=t" + kafkaSafe(t), "INBOX_RETRY_MIN=5ms", "INBOX_RETRY_MAX=50ms",
	}, more...)
	cfg, err := load(t, variables...)
	require.NoError(t, err)
	s := &stage{pool: pool, cfg: cfg, admin: kafkatest.Admin(t, brokers)}
	s.member = member{Environ: variables, Topic: kafkatest.Group(t), Consumer: "c" + kafkaSafe(t)}
	ensureTopic(t, cfg, s.member.Topic)
	publisher := kafkatest.NewPublisher(t, cfg.Kafka.Brokers)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	s.send = func(events ...event.Event) {
		for _, e := range events {
			require.NoError(t, publisher.Publish(s.member.Topic, e.Message()))
			s.sent++
		}
	}
	return s
}

func counted(version, n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		key, v := fmt.Sprintf("key-%d", i%5), version+i/5
		events[i] = event.Event{
			ID: fmt.Sprintf("%s/%d", key, v), Source: "/test", Type: ledgerType, Key: key, Version: int64(v),
			Time: time.Now(), Data: []byte(`{}`),
		}
	}
	return events
}

func (s *stage) start(t *testing.T) *crashtest.Process {
	t.Helper()
	return crashtest.Start(t, s.member)
}

func end(t *testing.T, p *crashtest.Process) {
	t.Helper()
	p.Await(t, 1, "started")
	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.NoError(t, p.Wait(t))
}

func (s *stage) group() string { return "twinbox." + s.cfg.Environment + "." + s.member.Consumer }

func (s *stage) count(t *testing.T, sql string) (n int) {
	t.Helper()
	require.NoError(t, s.pool.QueryRow(t.Context(), sql, s.member.Consumer).Scan(&n))
	return n
}

func (s *stage) effects(t *testing.T) int {
	t.Helper()
	return s.count(t, `select count(distinct event_id) from ledger where consumer = $1`)
}

func (s *stage) await(t *testing.T, effects int) {
	t.Helper()
	testkit.Until(t, func() bool { return s.effects(t) >= effects })
}

func (s *stage) requireOnceInOrder(t *testing.T, effects int) {
	t.Helper()
	require.Equal(t, effects, s.effects(t))
	require.Equal(t, effects, s.count(t, `select count(*) from ledger where consumer = $1`), "no effect twice")
	require.Zero(t, s.count(t, `select count(*) from (
		select version, lag(version) over (partition by key order by n) as before from ledger where consumer = $1) l
		where before >= version`), "in order per key")
	require.Equal(t, s.sent, s.committed(t))
}

func (s *stage) committed(t *testing.T) (n int) {
	t.Helper()
	offsets, err := s.admin.ListConsumerGroupOffsets(s.group(), map[string][]int32{s.member.Topic: {0, 1, 2}})
	require.NoError(t, err)
	for _, block := range offsets.Blocks[s.member.Topic] {
		n += int(max(0, block.Offset))
	}
	return n
}
