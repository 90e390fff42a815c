package kafka_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

const (
	app    = "app"
	secret = "secret"
)

// guarded gives the user app the listed rights, and root all.
func guarded(t *testing.T, topic, group string, rights map[kmsg.ACLResourceType][]kmsg.ACLOperation) kafka.Config {
	t.Helper()
	names := map[kmsg.ACLResourceType]string{kmsg.ACLResourceTypeTopic: topic, kmsg.ACLResourceTypeGroup: group}
	var acls []kfake.ACL
	for resource, operations := range rights {
		for _, operation := range operations {
			acls = append(acls, kfake.ACL{
				Resource: resource, Name: names[resource], Pattern: kmsg.ACLResourcePatternTypeLiteral,
				Operation: operation, Allow: true,
			})
		}
	}
	_, brokers := kafkatest.Fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, topic),
		kfake.Superuser("PLAIN", "root", secret), kfake.User("PLAIN", app, secret, acls...))
	return kafka.Config{Brokers: brokers, User: "root", Password: secret}
}

func grant(t *testing.T, root kafka.Config, topic, group string) {
	t.Helper()
	settings := kafka.ConsumerConfig{Config: root}.Consumer()
	settings.Metadata.Full = true
	cluster, err := sarama.NewClusterAdmin(root.Brokers, settings)
	require.NoError(t, err)
	for kind, name := range map[sarama.AclResourceType]string{
		sarama.AclResourceTopic: topic, sarama.AclResourceGroup: group,
	} {
		require.NoError(t, cluster.CreateACLs([]*sarama.ResourceAcls{{
			Resource: sarama.Resource{
				ResourceType: kind, ResourceName: name, ResourcePatternType: sarama.AclPatternLiteral,
			},
			Acls: []*sarama.Acl{{
				Principal: "User:" + app, Host: "*",
				Operation: sarama.AclOperationAll, PermissionType: sarama.AclPermissionAllow,
			}},
		}}))
	}
	require.NoError(t, cluster.Close())
}

func TestAMissingRightIsSaidAndWaitedFor(t *testing.T) {
	t.Parallel()
	const topic, group = "guarded", "test.guarded"
	const onTopic, onGroup = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup
	read, describe := kmsg.ACLOperationRead, kmsg.ACLOperationDescribe
	type rights = map[kmsg.ACLResourceType][]kmsg.ACLOperation
	for name, row := range map[string]struct {
		rights rights
		code   string
	}{
		"no topic":       {rights{onGroup: {read}}, "kafka_29"},
		"a topic to see": {rights{onGroup: {read}, onTopic: {describe}}, "kafka_29"},
		"no group":       {rights{onTopic: {read}}, "kafka_30"},
		"a group to see": {rights{onTopic: {read}, onGroup: {describe}}, "kafka_30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := guarded(t, topic, group, row.rights)
			require.NoError(t, newPublisher(t, root).Publish(topic, newEvent("a", 1)))
			cfg := singles(root.Brokers, group)
			cfg.User, cfg.Password = app, secret
			cfg.UnhealthyAfter = 50 * time.Millisecond
			log := &lines{}
			m := consume(t, cfg, topic, nil, slog.New(log))

			testkit.Until(t, func() bool {
				err := m.Healthy(t.Context())
				return len(log.allCodes()) > 0 && err != nil && strings.Contains(err.Error(), row.code+": ")
			}) // sarama asks for a group two dozen times, with a pause before each
			require.Equal(t, []string{row.code}, slices.Compact(log.allCodes()))

			grant(t, root, topic, group)
			m.read(t, 1)
			testkit.Until(t, func() bool { return m.Healthy(t.Context()) == nil })
		})
	}
}
