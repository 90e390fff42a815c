package consumer_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// hole is a broker's network, in which answers can begin to vanish without a word, as when its machine does.
type hole struct{ swallows atomic.Bool }

func (h *hole) listen(network, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	return holedListener{listener, h}, err
}

type holedListener struct {
	net.Listener
	*hole
}

func (l holedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return holedConn{conn, l.hole}, err
}

type holedConn struct {
	net.Conn
	*hole
}

func (c holedConn) Write(p []byte) (int, error) {
	if c.swallows.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// groupOf is a group that the broker at the address coordinates.
func groupOf(t *testing.T, brokers []string, coordinator string) string {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	client, err := sarama.NewClient(brokers, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	for range 1000 {
		group := kafkatest.Group(t)
		broker, err := client.Coordinator(group)
		require.NoError(t, err)
		if broker.Addr() == coordinator {
			return group
		}
	}
	require.FailNow(t, "no group for the coordinator")
	return ""
}

// holes are two brokers, each with a network of its own.
func holes(t *testing.T) (cluster *kfake.Cluster, brokers []string, networks []*hole) {
	t.Helper()
	cluster, brokers = kafkatest.Fake(t, kfake.NumBrokers(2),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			networks = append(networks, &hole{})
			return networks[len(networks)-1].listen(network, address)
		}))
	return cluster, brokers, networks
}

// TestALeaderThatVanishesWithoutAWord: what was asked of it is given up after the request timeout, although joining the
// group may take as long as a rebalance, and its successor is read.
func TestALeaderThatVanishesWithoutAWord(t *testing.T) {
	t.Parallel()
	cluster, brokers, networks := holes(t)
	topic := kafkatest.Topic(t, brokers, 1)
	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 0))
	publisher := newPublisher(t, kafka.Config{Brokers: brokers[1:]})
	require.NoError(t, publisher.Publish(topic, event("a", 1)))
	cfg := fast(brokers, groupOf(t, brokers, brokers[1]))
	cfg.RequestTimeout, cfg.RebalanceTimeout = 500*time.Millisecond, 2*kafkatest.Patience
	l := listen(t, cfg, topic)
	require.Equal(t, []string{"a-1"}, read(t, l, 1))

	networks[0].swallows.Store(true)
	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 1))
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers[1:]}).Publish(topic, event("a", 2)))
	require.Equal(t, []string{"a-2"}, read(t, l, 1))
}

// TestACoordinatorThatVanishesWithoutAWord: heartbeats and commits, too, are given up after the request timeout, and
// the next coordinator is asked, in the same session. Else the group would take the member for dead meanwhile.
func TestACoordinatorThatVanishesWithoutAWord(t *testing.T) {
	t.Parallel()
	cluster, brokers, networks := holes(t)
	topic := kafkatest.Topic(t, brokers, 1)
	require.NoError(t, cluster.MoveTopicPartition(topic, 0, 1))
	publisher := newPublisher(t, kafka.Config{Brokers: brokers[1:]})
	require.NoError(t, publisher.Publish(topic, event("a", 1)))
	cfg := fast(brokers, groupOf(t, brokers, brokers[0]))
	cfg.RequestTimeout, cfg.RebalanceTimeout = 500*time.Millisecond, 2*kafkatest.Patience
	l := listen(t, cfg, topic)
	require.Equal(t, []string{"a-1"}, read(t, l, 1))
	awaitCommit(t, cfg, topic, 1) // so that no commit is under way, which would look for the coordinator

	beats, commits := make(chan struct{}, 1), make(chan struct{}, 1)
	networks[0].swallows.Store(true)
	for cluster.CoordinatorFor(cfg.Group) == 0 {
		cluster.RehashCoordinators()
	}
	announce(cluster, kmsg.Heartbeat, beats)
	announce(cluster, kmsg.OffsetCommit, commits)
	receive(t, beats)
	require.NoError(t, publisher.Publish(topic, event("a", 2)))
	require.Equal(t, []string{"a-2"}, read(t, l, 1))
	receive(t, commits)
	require.Empty(t, l.lost)
}

// announce tells of requests that arrive at the second broker.
func announce(cluster *kfake.Cluster, key kmsg.Key, arrived chan<- struct{}) {
	cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() == 1 {
			select {
			case arrived <- struct{}{}:
			default:
			}
		}
		return nil, nil, false
	})
}
