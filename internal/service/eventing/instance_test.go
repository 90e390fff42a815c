package eventing_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func instances(t *testing.T, cfg eventing.Config) []string {
	t.Helper()
	settings := sarama.NewConfig()
	settings.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin(cfg.Kafka.Brokers, settings)
	require.NoError(t, err)
	defer admin.Close()
	groups, err := admin.DescribeConsumerGroups([]string{"twinbox." + cfg.Environment + ".test.pings"})
	require.NoError(t, err)
	require.Len(t, groups, 1)
	names := []string{}
	for _, member := range groups[0].Members {
		name := ""
		if member.GroupInstanceId != nil {
			name = *member.GroupInstanceId
		}
		names = append(names, name)
	}
	return names
}

type instance struct {
	*bundle
	at      service.Listening
	handled chan int
	ended   chan error
	log     *lines
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

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(text string) int { return strings.Count(l.String(), text) }

func startInstance(t *testing.T, cfg eventing.Config, topic string) *instance {
	t.Helper()
	log := &lines{}
	i := &instance{
		bundle: openWith(t, slog.New(slog.NewTextHandler(log, nil)), cfg), log: log, handled: make(chan int, 10),
	}
	mux := inbox.NewMux()
	inbox.Handle(mux, pingedEvent, func(_ context.Context, _ pgx.Tx, _ event.Event, data pinged) error {
		i.handled <- data.N
		return nil
	})
	require.NoError(t, i.node.Consume(eventing.Consumer{Name: "test.pings", Topic: topic, Handlers: mux}))
	listening, ended := i.run(eventing.Listeners{Admin: "127.0.0.1:0"},
		func(group *service.Group, _ net.Listener) { i.node.StartConsumers(group) })
	i.at, i.ended = <-listening, ended
	return i
}

func (i *instance) end(t *testing.T) {
	t.Helper()
	i.stop()
	require.NoError(t, <-i.ended)
}

func TestEachProcessHasAnInstanceIDOfItsOwn(t *testing.T) {
	t.Parallel()
	dsn, broker := pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0]
	cfg := environ(t, dsn, broker)
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	host, err := os.Hostname()
	require.NoError(t, err)
	one, other := startInstance(t, cfg, topic), startInstance(t, cfg, topic)
	want := make([]string, 0, 2)
	for _, i := range []*instance{one, other} {
		_, port, err := net.SplitHostPort(i.at.Admin)
		require.NoError(t, err)
		want = append(want, host+"-"+port)
	}
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 2 })
	require.ElementsMatch(t, want, instances(t, cfg))
	one.end(t)
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 1 }, "a clean stop leaves")
	other.end(t)

	cfg.Kafka.InstanceID = "none"
	nameless := startInstance(t, cfg, topic)
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 1 })
	require.Equal(t, []string{""}, instances(t, cfg))
	nameless.end(t)
}

// If the earlier process ended, a supervisor would restart it to take the name back.
func TestOfTwoProcessesWithOneNameBothGoOn(t *testing.T) {
	t.Parallel()
	dsn, broker := pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0]
	cfg := environ(t, dsn, broker, "KAFKA_INSTANCE_ID=same", "KAFKA_TOPIC_PARTITIONS=2")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	const said = "another process has the same KAFKA_INSTANCE_ID"
	earlier := startInstance(t, cfg, topic)
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 1 })
	later := startInstance(t, cfg, topic)
	testkit.Until(t, func() bool { return earlier.log.count(said) == 1 })
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 2 })
	require.ElementsMatch(t, []string{"same", ""}, instances(t, cfg))
	for _, i := range []*instance{earlier, later} {
		testkit.Until(t, func() bool {
			return servicetest.Status(t, "http://"+i.at.Admin+"/readyz") == http.StatusOK
		})
	}
	require.Equal(t, 1, earlier.log.count(said))
	require.Zero(t, later.log.count(said))
	later.end(t)
	earlier.end(t)
}
