package eventing_test

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func instances(t *testing.T, cfg eventing.Config) []string {
	t.Helper()
	admin := kafkatest.Admin(t, cfg.Kafka.Brokers)
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
	at   service.Listeners
	stop func()
	log  *lines
}

func startInstance(t *testing.T, cfg eventing.Config, topic string) *instance {
	t.Helper()
	i := &instance{log: &lines{}}
	b := openWith(t, slog.New(slog.NewTextHandler(i.log, nil)), cfg)
	b.consume(t, eventing.Consumer{Name: "test.pings", Topic: topic, Handlers: inbox.NewMux()})
	listening, ended := b.run(service.Listeners{Admin: "127.0.0.1:0"})
	i.at = <-listening
	i.stop = func() {
		b.stop()
		require.NoError(t, <-ended)
	}
	return i
}

func TestEachProcessHasAnInstanceIDOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cfg, topic := p.cfg, p.topic
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
	one.stop()
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 1 }, "a clean stop leaves")
	other.stop()

	cfg.Kafka.InstanceID = "none"
	nameless := startInstance(t, cfg, topic)
	testkit.Until(t, func() bool { return len(instances(t, cfg)) == 1 })
	require.Equal(t, []string{""}, instances(t, cfg))
	nameless.stop()
}

// If the earlier process ended, a supervisor would restart it to take the name back.
func TestOfTwoProcessesWithOneNameBothGoOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_INSTANCE_ID=same", "KAFKA_TOPIC_PARTITIONS=2")
	cfg, topic := p.cfg, p.topic
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
	later.stop()
	earlier.stop()
}
