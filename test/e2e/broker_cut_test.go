package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/realkafka"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

type ownBroker struct {
	cfg    realkafka.Config
	server *realkafka.Server
}

// startBroker skips the test without a real Kafka: the broker in process has no log on disk.
func startBroker(t *testing.T, cfg realkafka.Config) *ownBroker {
	t.Helper()
	if !kafkatest.IsReal() {
		t.Skipf("needs a real Apache Kafka: make test-kafka, or %s=real", kafkatest.Variable)
	}
	cfg.Dir = t.TempDir()
	b := &ownBroker{cfg: cfg}
	b.start(t)
	b.cfg.Addr = b.addr()
	t.Cleanup(func() { require.NoError(t, b.server.Stop()) })
	return b
}

func (b *ownBroker) addr() string { return b.server.Addr() }

func (b *ownBroker) start(t *testing.T) {
	t.Helper()
	server, err := realkafka.Start(t.Context(), b.cfg)
	require.NoError(t, err)
	b.server = server
}

// restart is for a broker that was killed.
func (b *ownBroker) restart(t *testing.T) {
	t.Helper()
	require.NoError(t, b.server.Stop())
	b.start(t)
}

func (b *ownBroker) flushed(t *testing.T, topic string) map[string]int64 {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(b.cfg.Dir, "data", topic+"-*", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	sizes := map[string]int64{}
	for _, path := range segments {
		info, err := os.Stat(path)
		require.NoError(t, err)
		sizes[path] = info.Size()
	}
	return sizes
}

// losePower kills the broker and cuts its segments to the lengths that were on disk.
func (b *ownBroker) losePower(t *testing.T, flushed map[string]int64) {
	t.Helper()
	b.server.Kill()
	var lost int64
	for path, size := range flushed {
		info, err := os.Stat(path)
		require.NoError(t, err)
		lost += info.Size() - size
		require.NoError(t, os.Truncate(path, size))
		for _, pattern := range []string{"*.index", "*.timeindex", "*.txnindex", "*.snapshot"} {
			derived, err := filepath.Glob(filepath.Join(filepath.Dir(path), pattern))
			require.NoError(t, err)
			for _, name := range derived {
				require.NoError(t, os.Remove(name))
			}
		}
	}
	require.Positive(t, lost, "nothing is cut")
	b.restart(t)
	b.awaitEnds(t, contract.TopicUsers)
}

func (b *ownBroker) awaitEnds(t *testing.T, topic string) {
	t.Helper()
	client, err := sarama.NewClient([]string{b.addr()}, sarama.NewConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	partitions, err := client.Partitions(topic)
	require.NoError(t, err)
	for _, partition := range partitions {
		testkit.Until(t, func() bool {
			_, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			return err == nil
		}, "%s/%d has no leader", topic, partition)
	}
}

// startThree makes the first broker the controller, too: no test stops it.
func startThree(t *testing.T) [3]*ownBroker {
	t.Helper()
	settings := map[string]string{
		"offsets.topic.replication.factor": "3", "broker.session.timeout.ms": "3000",
		"broker.heartbeat.interval.ms": "500", "replica.lag.time.max.ms": "3000", "min.insync.replicas": "1",
	}
	first := startBroker(t, realkafka.Config{Node: 1, Settings: settings})
	brokers := [3]*ownBroker{first}
	for i := range 2 {
		brokers[i+1] = startBroker(t, realkafka.Config{
			Node: i + 2, Join: first.server.Controller(), Settings: maps.Clone(settings),
		})
	}
	return brokers
}

// placeTopic lets the first of the brokers lead all six partitions. A replica that lags may lead, too.
func placeTopic(t *testing.T, admin sarama.ClusterAdmin, topic string, nodes ...int32) {
	t.Helper()
	yes, appended := "true", "LogAppendTime"
	detail := &sarama.TopicDetail{
		NumPartitions: -1, ReplicationFactor: -1, ReplicaAssignment: map[int32][]int32{},
		ConfigEntries: map[string]*string{"unclean.leader.election.enable": &yes, "message.timestamp.type": &appended},
	}
	for partition := range int32(6) {
		detail.ReplicaAssignment[partition] = nodes
	}
	require.NoError(t, admin.CreateTopic(topic, detail, false))
}

// awaitLeader waits for any leader if node is 0. It opens a new connection for each look: the last one may have gone to
// a broker that was killed.
func awaitLeader(t *testing.T, of *ownBroker, topic string, node int32, inSync int) {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	var seen []string
	testkit.Until(t, func() bool {
		admin, err := sarama.NewClusterAdmin([]string{of.addr()}, cfg)
		if err != nil {
			return false
		}
		defer func() { _ = admin.Close() }()
		topics, err := admin.DescribeTopics([]string{topic})
		if err != nil {
			return false
		}
		led := len(topics[0].Partitions) > 0
		seen = seen[:0]
		for _, p := range topics[0].Partitions {
			led = led && (p.Leader == node || node == 0) && len(p.Isr) == inSync
			seen = append(seen, fmt.Sprintf("%d: %d of %v", p.ID, p.Leader, p.Isr))
		}
		return led
	}, "broker %d does not lead %s: %v", node, topic, &seen)
}

func addressesOf(brokers [3]*ownBroker) string {
	var list []string
	for _, b := range brokers {
		list = append(list, b.addr())
	}
	return strings.Join(list, ",")
}
