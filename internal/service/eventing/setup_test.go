package eventing_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

var sets = []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox}

func load(t *testing.T, environ ...string) (eventing.Config, error) {
	t.Helper()
	var cfg struct{ eventing.Config }
	err := config.Load(environ, &cfg)
	return cfg.Config, err
}

func environ(t *testing.T, dsn, broker string, more ...string) eventing.Config {
	t.Helper()
	cfg, err := load(t, append([]string{
		"DATABASE_URL=" + dsn, "KAFKA_BROKERS=" + broker, "KAFKA_SESSION_TIMEOUT=1m", "KAFKA_PUBLISH_TIMEOUT=20s",
		"OUTBOX_LEASE=1m", "ENVIRONMENT=t" + kafkaSafe(t),
	}, more...)...)
	require.NoError(t, err)
	return cfg
}

func kafkaSafe(t *testing.T) string {
	t.Helper()
	name := kafkatest.Group(t)
	return name[len(name)-8:]
}

type bundle struct {
	node  *eventing.Node
	admin *service.Admin
	group *service.Group
	stop  context.CancelFunc

	checks url.Values // of its readiness; nil: not asked yet
}

func open(t *testing.T, cfg eventing.Config, topics ...kafka.Topic) *bundle {
	t.Helper()
	return openWith(t, slog.New(slog.DiscardHandler), cfg, topics...)
}

func openWith(t *testing.T, log *slog.Logger, cfg eventing.Config, topics ...kafka.Topic) *bundle {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	group := service.NewGroup(ctx, log, patience)
	admin := service.NewAdmin(service.AdminConfig{Log: log, Draining: group.Context().Done(), CheckTimeout: patience})
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: "test", Source: "/test", Config: cfg, Migrations: sets, Topics: topics, Admin: admin, Log: log,
		Validate: func(event.Event) error { return nil },
	})
	require.NoError(t, err)
	return &bundle{node: node, admin: admin, group: group, stop: stop}
}

func (b *bundle) run(at service.Listeners) (listening chan service.Listeners, ended chan error) {
	listening, ended = make(chan service.Listeners, 1), make(chan error, 1)
	host := service.Host{
		Log:   slog.New(slog.DiscardHandler),
		Ready: func(l service.Listeners) { listening <- l },
	}
	go func() { ended <- b.node.Run(b.group, at, host) }()
	return listening, ended
}

func (b *bundle) mustNotStart(t *testing.T) {
	t.Helper()
	b.node.Go("task", func(context.Context) error {
		t.Error("started")
		return nil
	})
}

func (b *bundle) serve(t *testing.T) (stop func()) {
	t.Helper()
	listening, ended := b.run(service.Listeners{Admin: "127.0.0.1:0"})
	select {
	case <-listening:
	case err := <-ended:
		require.FailNow(t, "the service ended", "%v", err)
	}
	stop = sync.OnceFunc(func() {
		b.stop()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

func (b *bundle) consume(t *testing.T, c eventing.Consumer) {
	t.Helper()
	require.NoError(t, b.node.Consume(c))
}

func pings(handle func(ctx context.Context, tx pgx.Tx, e event.Event, data pinged) error) *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, pingedEvent, handle)
	return mux
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func ensureTopic(t *testing.T, cfg eventing.Config, name string) {
	t.Helper()
	require.NoError(t, kafka.EnsureTopics(t.Context(), cfg.Client("test"), cfg.Topics(name)...))
}

// place is a database and a topic on the shared broker.
type place struct {
	pool    *pgxpool.Pool
	brokers []string
	cfg     eventing.Config
	topic   string
}

func newPlace(t *testing.T, more ...string) place {
	t.Helper()
	p := place{pool: pgtest.New(t, sets...), brokers: kafkatest.Brokers(t), topic: kafkatest.Group(t)}
	p.cfg = environ(t, pgtest.DSN(p.pool), p.brokers[0], more...)
	ensureTopic(t, p.cfg, p.topic)
	return p
}

func sendRaw(t *testing.T, brokers []string, records ...*sarama.ProducerMessage) {
	t.Helper()
	producer, err := sarama.NewSyncProducer(brokers, kafka.Config{Brokers: brokers}.Producer())
	require.NoError(t, err)
	for _, r := range records {
		_, _, err := producer.SendMessage(r)
		require.NoError(t, err)
	}
	require.NoError(t, producer.Close())
}

func deadLetters(ctx context.Context, pool *pgxpool.Pool) ([]deadletter.Letter, error) {
	rows, _ := pool.Query(ctx, `select `+deadletter.Columns+` from dead_letter order by id`)
	return pgx.CollectRows(rows, deadletter.Scan)
}

func pingRecord(t *testing.T, topic string, version int64) *sarama.ProducerMessage {
	t.Helper()
	record, err := kafka.Marshaler{}.Marshal(topic, event.Event{
		ID: fmt.Sprintf("a/%d", version), Source: "/test", Type: "test.pinged.v1", Key: "a", Version: version,
		Time: time.Now(), Data: []byte(`{"n":1}`),
	}.Message())
	require.NoError(t, err)
	return record
}
