package eventing_test

import (
	"crypto/x509"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

var trusted = struct {
	sync.Once
	*testkit.TLSServer
}{}

func encrypted(t *testing.T, opts ...kfake.Opt) (*testkit.TLSServer, string) {
	t.Helper()
	trusted.Do(func() {
		trusted.TLSServer = testkit.NewTLSServer(t)
		require.NoError(t, os.Setenv("SSL_CERT_FILE", trusted.File(t)))
		_, err := x509.SystemCertPool() // read once in a process
		require.NoError(t, err)
	})
	server := trusted.Another(t)
	_, brokers := kafkatest.Fake(t, append(opts, kfake.TLS(server.Config()))...)
	return server, brokers[0]
}

func TestABrokerWithABadCertificateIsNotReady(t *testing.T) {
	t.Parallel()
	server, broker := encrypted(t)
	b := ready(t, pgtest.New(t, sets...), []string{broker}, "KAFKA_TLS=true")
	for name, flaw := range testkit.TLSFlaws {
		t.Log(name)
		server.Show(t, flaw.Spoil)
		b.awaitFailing(t, "broker", flaw.Says)
		server.Show(t, func(*x509.Certificate) {})
		b.awaitReady(t)
	}
}

func TestARightAtTheBrokerThatWasTakenAwayIsNotReady(t *testing.T) {
	t.Parallel()
	const topic, secret = "guarded", "hunter22"
	_, broker := encrypted(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, topic),
		kfake.Superuser("PLAIN", "root", secret), kfake.User("PLAIN", "app", secret))
	pool := pgtest.New(t, sets...)
	cfg := environ(t, pgtest.DSN(pool), broker, "KAFKA_TLS=true", "KAFKA_USERNAME=app",
		"KAFKA_PASSWORD="+secret,
		"KAFKA_PUBLISH_TIMEOUT=500ms", "OUTBOX_POLL=1s", "KAFKA_SESSION_TIMEOUT=6s")
	root := cfg
	root.Kafka.Username = "root"
	root.Kafka.PublishTimeout = 20 * time.Second // it makes the topic of the copies, and is no part of the test
	settings := root.Client("test").Producer()
	settings.Metadata.Full = true
	cluster, err := sarama.NewClusterAdmin([]string{broker}, settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Close()) })
	give := func(kind sarama.AclResourceType, name string, operation sarama.AclOperation) {
		t.Helper()
		require.NoError(t, cluster.CreateACLs([]*sarama.ResourceAcls{{
			Resource: sarama.Resource{
				ResourceType: kind, ResourceName: name, ResourcePatternType: sarama.AclPatternLiteral,
			},
			Acls: []*sarama.Acl{{
				Principal: "User:app", Host: "*", Operation: operation, PermissionType: sarama.AclPermissionAllow,
			}},
		}}))
	}
	take := func(kind sarama.AclResourceType, name string, operation sarama.AclOperation) {
		t.Helper()
		taken, err := cluster.DeleteACL(sarama.AclFilter{
			ResourceType: kind, ResourceName: &name, ResourcePatternTypeFilter: sarama.AclPatternLiteral,
			Operation: operation, PermissionType: sarama.AclPermissionAllow,
		}, false)
		require.NoError(t, err)
		require.Len(t, taken, 1)
	}
	group := "twinbox." + cfg.Environment + ".test.pings"
	for _, operation := range []sarama.AclOperation{
		sarama.AclOperationRead, sarama.AclOperationWrite, sarama.AclOperationDescribe, sarama.AclOperationDescribeConfigs,
	} {
		give(sarama.AclResourceTopic, topic, operation)
	}
	give(sarama.AclResourceGroup, group, sarama.AclOperationRead)
	give(sarama.AclResourceCluster, "kafka-cluster", sarama.AclOperationIdempotentWrite)
	b := open(t, cfg)
	b.consume(t, eventing.Consumer{Name: "test.pings", Topic: topic, Handlers: inbox.NewMux()})
	b.serve(t)
	copies := "dlq." + group + "." + topic
	b.awaitSaid(t, "consumer test.pings",
		"open topic "+copies+" for copies of dead letters, which the command topics creates: ")
	require.NoError(t, root.EnsureTopics(t.Context(), io.Discard, "test", root.Topics(copies)))
	for _, operation := range []sarama.AclOperation{sarama.AclOperationDescribe, sarama.AclOperationDescribeConfigs} {
		give(sarama.AclResourceTopic, copies, operation)
	}
	b.awaitReady(t)

	take(sarama.AclResourceTopic, topic, sarama.AclOperationWrite)
	b.add(t, topic, "k")
	b.awaitSaid(t, "held events", "not authorized to access this topic")
	give(sarama.AclResourceTopic, topic, sarama.AclOperationWrite)
	b.awaitReady(t)

	take(sarama.AclResourceTopic, topic, sarama.AclOperationRead)
	b.awaitSaid(t, "consumer test.pings", "kafka_29")
	give(sarama.AclResourceTopic, topic, sarama.AclOperationRead)
	b.awaitReady(t)

	take(sarama.AclResourceGroup, group, sarama.AclOperationRead)
	b.awaitSaid(t, "consumer test.pings", "kafka_30")
	give(sarama.AclResourceGroup, group, sarama.AclOperationRead)
	b.awaitReady(t)
}

func (b *bundle) awaitSaid(t *testing.T, check, reason string) {
	t.Helper()
	var last map[string]string
	testkit.Until(t, func() bool {
		_, last = b.report(t)
		return strings.Contains(last[check], reason)
	}, "want %s for %q: %v", check, reason, &last)
}
