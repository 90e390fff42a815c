package servicetest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// Part is a service of a [System].
type Part struct {
	eventing.Described
	// Environ adds to the database, the broker and the addresses, and overrides them.
	Environ []string
}

// System is services in this process, each on its own database, on one broker.
type System struct {
	t     testing.TB
	parts []*part
	limit time.Duration

	// AllowsDeadLetters lets [System.Settle] return although an event was given up.
	AllowsDeadLetters bool
}

type part struct {
	name      string
	pool      *pgxpool.Pool
	hasLeases bool
	head      int64 // highest position of the outbox
	instance  *eventing.Instance
	consumers []eventing.Consumer
	at        service.Listeners
}

// patient lets a machine pause for seconds: no member expires, no record is published twice.
var patient = []string{
	"HTTP_ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "KAFKA_SESSION_TIMEOUT=1m", "KAFKA_PUBLISH_TIMEOUT=20s",
	"OUTBOX_LEASE=40s", "SMTP_TIMEOUT=15s", "MAIL_POLL=50ms",
}

// Start migrates a database for each service, makes the topics, and returns when each listens. They stop with the test.
// Its log has their warnings, and on a failure the pending work. The package's TestMain is kafkatest.Main.
func Start(t testing.TB, services ...Part) *System {
	t.Helper()
	s := &System{t: t, limit: testkit.WaitLimit}
	environ := append([]string{
		"KAFKA_BROKERS=" + kafkatest.Brokers(t)[0], "ENVIRONMENT=" + strings.ToLower(rand.Text()),
	}, patient...)
	var topics []kafka.Topic
	var client kafka.Config
	for _, of := range services {
		p := &part{name: of.Name, pool: pgtest.New(t, of.Migrations...)}
		s.parts = append(s.parts, p)
		err := p.pool.QueryRow(t.Context(), `select to_regclass('public.lease') is not null`).Scan(&p.hasLeases)
		require.NoError(t, err, "look for leases")
		p.instance, err = of.Load(known(of, append(environ, "DATABASE_URL="+pgtest.DSN(p.pool))))
		require.NoError(t, err, "configure %s", of.Name)
		found, err := p.instance.Declared(t.Context())
		require.NoError(t, err)
		p.consumers = found.Consumers
		topics, client = append(topics, p.instance.Topics()...), p.instance.Client("test")
		for _, c := range found.Consumers {
			topics = append(topics, p.instance.Shared().Topics(c.Topic)...)
		}
	}
	require.NoError(t, kafka.EnsureTopics(t.Context(), client, topics...), "make topics")
	for _, p := range s.parts {
		p.run(t)
	}
	t.Cleanup(func() { // before they are stopped
		if t.Failed() {
			busy, err := s.look(context.WithoutCancel(t.Context()))
			t.Logf("under way: %q %v", busy, err)
		}
	})
	return s
}

// known leaves out settings that the service does not read, unless the test gives them.
func known(of Part, environ []string) (list []string) {
	reads := of.Unset()
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		given := func(other string) bool { return strings.HasPrefix(other, name+"=") }
		if reads.Reads(name) && !slices.ContainsFunc(of.Environ, given) {
			list = append(list, entry)
		}
	}
	return append(list, of.Environ...)
}

func (p *part) run(t testing.TB) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listening, ended := make(chan service.Listeners, 1), make(chan error, 1)
	host := service.Host{
		Log:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})).With("in", p.name),
		Ready: func(at service.Listeners) { listening <- at },
	}
	go func() { ended <- p.instance.Run(ctx, host) }()
	select {
	case p.at = <-listening:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("%s ended with %v", p.name, err)
			}
		})
	case err := <-ended:
		stop()
		t.Fatalf("%s did not start: %v", p.name, err)
	}
}

func (s *System) part(name string) *part {
	s.t.Helper()
	for _, p := range s.parts {
		if p.name == name {
			return p
		}
	}
	s.t.Fatalf("no service %s was started", name)
	return nil
}

func (s *System) API(name string) string { s.t.Helper(); return s.part(name).at.API }

func (s *System) Pool(name string) *pgxpool.Pool { s.t.Helper(); return s.part(name).pool }
