package e2e

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// stack outlives the two services.
type stack struct {
	customerDB, notificationDB *pgxpool.Pool
	box                        *mailbox.Mailbox
	brokers                    []string
	customerEnv                []string
	notificationEnv            []string
}

// newStack makes the topics anew, because a real broker has those of the last test.
func newStack(t *testing.T, more ...string) *stack {
	t.Helper()
	return newStackOn(t, ownBrokers(t), pgtest.New(t, migrations.ForCustomer()...), more...)
}

// free are addresses of a real Kafka that no test uses.
var free = make(chan string, 100)

// ownBrokers returns the addresses of a broker that no other test uses until this one ends, unless it is shared. A real
// Kafka keeps the topics and groups of the tests before.
func ownBrokers(t *testing.T) []string {
	t.Helper()
	if !kafkatest.IsReal() || kafkatest.IsShared() {
		return kafkatest.Brokers(t)
	}
	var addr string
	select {
	case addr = <-free:
	default:
		addr = kafkatest.StartReal(t)
	}
	t.Cleanup(func() { free <- addr })
	return []string{addr}
}

func newStackOn(t *testing.T, brokers []string, customerDB *pgxpool.Pool, more ...string) *stack {
	t.Helper()
	h := &stack{
		brokers:        brokers,
		customerDB:     customerDB,
		notificationDB: pgtest.New(t, migrations.ForNotification()...),
	}
	var err error
	h.box, err = mailbox.Start(t.Context(), mailbox.Config{Keep: 1_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.box.Close()) })
	common := []string{
		"ENVIRONMENT=" + environment(t),
		"KAFKA_BROKERS=" + brokers[0],
		"OUTBOX_POLL=50ms",
		"INBOX_RETRY_MIN=10ms",
		"VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
		"ADMIN_ADDR=127.0.0.1:0",
		"LOG_LEVEL=warn",
	}
	common = append(append(common, timeouts()...), more...)
	h.customerEnv = append([]string{
		"DATABASE_URL=" + pgtest.DSN(h.customerDB), "HTTP_ADDR=" + testkit.ReservePort(t), // the same after a crash
		"SIGNUPS_PER_CLIENT=0", // all people of a test are one client
	}, common...)
	h.notificationEnv = append([]string{
		"DATABASE_URL=" + pgtest.DSN(h.notificationDB), "SMTP_ADDR=" + h.box.SMTPAddr(), "SMTP_TLS=none",
		"SMTP_TIMEOUT=10s", "MAIL_LEASE=15s", "MAIL_POLL=50ms", // a machine that is slow must leave no mail uncertain
	}, common...)
	h.makeTopics(t, brokers)
	return h
}

// timeouts returns short ones, because tests of a crash wait for them. A real broker takes longer to answer.
func timeouts() []string {
	switch {
	case kafkatest.IsShared(): // by default a broker allows no shorter sessions than 6 s
		return []string{"KAFKA_PUBLISH_TIMEOUT=1s", "OUTBOX_LEASE=2s", "KAFKA_SESSION_TIMEOUT=6s"}
	case kafkatest.IsReal():
		return []string{"KAFKA_PUBLISH_TIMEOUT=3s", "OUTBOX_LEASE=5s", "KAFKA_SESSION_TIMEOUT=2s"}
	}
	return []string{"KAFKA_PUBLISH_TIMEOUT=1s", "OUTBOX_LEASE=2s", "KAFKA_SESSION_TIMEOUT=1s"}
}

func (h *stack) endMailLeases(t *testing.T) {
	t.Helper()
	_, err := h.notificationDB.Exec(context.WithoutCancel(t.Context()),
		`update lease set due_at = clock_timestamp() where state in ('claimed', 'submitting')`)
	require.NoError(t, err)
}

func (h *stack) makeTopics(t *testing.T, brokers []string) {
	t.Helper()
	if kafkatest.IsReal() {
		dropTopics(t, brokers, contract.TopicUsers, contract.TopicMails)
	}
	h.ensureTopics(t)
}

func (h *stack) makeAnew(t *testing.T, topic string) {
	t.Helper()
	dropTopics(t, h.brokers, topic)
	h.ensureTopics(t)
}

func (h *stack) ensureTopics(t *testing.T) {
	t.Helper()
	var c customer.Config
	var n notification.Config
	require.NoError(t, config.Load(h.customerEnv, &c))
	require.NoError(t, config.Load(h.notificationEnv, &n))
	topics := append(c.Topics(), n.Topics()...)
	for _, d := range contract.All() { // an event that a different service writes may be read
		if !slices.ContainsFunc(topics, func(made kafka.Topic) bool { return made.Name == d.Topic }) {
			topics = append(topics, c.Config.Topics(d.Topic)...)
		}
	}
	// The broker refuses to make a topic again while it deletes it.
	require.EventuallyWithT(t, func(collect *assertCollect) {
		require.NoError(collect, kafka.EnsureTopics(t.Context(), c.Client("e2e"), topics...))
	}, kafkatest.Patience, 100*time.Millisecond)
}

// dropTopics waits for the broker that gets the records. It learns of the deletion after the controller, and would
// write records for a new topic of that name to the old one.
func dropTopics(t *testing.T, brokers []string, topics ...string) {
	t.Helper()
	admin := kafkatest.Admin(t, brokers)
	for _, topic := range topics {
		if err := admin.DeleteTopic(topic); err != nil {
			require.ErrorIs(t, err, sarama.ErrUnknownTopicOrPartition)
		}
	}
	testkit.Until(t, func() bool {
		found, err := admin.DescribeTopics(topics)
		return err == nil && !slices.ContainsFunc(found, func(topic *sarama.TopicMetadata) bool {
			return topic.Err != sarama.ErrUnknownTopicOrPartition
		})
	}, "the topics of the last test are still there")
}

const (
	customerService     = "customer"
	notificationService = "notification"
)

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func serve(ctx context.Context, name string, environ []string, host service.Host) error {
	if name == customerService {
		var cfg customer.Config
		if err := config.Load(environ, &cfg); err != nil {
			return err
		}
		return customer.Service.Run(ctx, cfg, host)
	}
	var cfg notification.Config
	if err := config.Load(environ, &cfg); err != nil {
		return err
	}
	return notification.Service.Run(ctx, cfg, host)
}

func (h *stack) environ(name string) []string {
	if name == customerService {
		return h.customerEnv
	}
	return h.notificationEnv
}

func (h *stack) start(t *testing.T, name string) (stop func()) {
	t.Helper()
	_, stop = h.startWith(t, name, h.environ(name), quiet().With("service", name))
	return stop
}

// startWith runs a service in this process. Its stop fails the test unless the service ends well.
func (h *stack) startWith(
	t *testing.T, name string, environ []string, log *slog.Logger,
) (at service.Listeners, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan service.Listeners, 1)
	host := service.Host{Log: log, Ready: func(at service.Listeners) { ready <- at }}
	go func() { ended <- serve(ctx, name, environ, host) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended, "a clean stop of %s", name)
	})
	select {
	case at = <-ready:
		t.Cleanup(stop)
	case err := <-ended:
		cancel()
		require.NoError(t, err, "start %s", name)
	}
	return at, stop
}
