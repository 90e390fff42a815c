package kafka_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestGroupsBehind(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := singles(brokers, kafkatest.Group(t))
	topic, other := kafkatest.Topic(t, brokers, 2), kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, other, 0, "1")
	toPartition(t, brokers, topic, 0, "1", "2")
	m := join(t, cfg, topic)
	m.read(t, 2)
	testkit.Until(t, func() bool { return committed(t, brokers, cfg.Group, topic) == 2 })
	m.close()
	behind := func(topic string) (records int64, is bool) {
		t.Helper()
		all, err := kafka.GroupsBehind(t.Context(), kafka.Config{Brokers: brokers}, topic)
		require.NoError(t, err)
		records, is = all[cfg.Group]
		return records, is
	}
	_, is := behind(topic)
	require.False(t, is, "it has read everything")
	_, is = behind(other)
	require.False(t, is, "it reads nothing there")

	toPartition(t, brokers, topic, 0, "3")
	toPartition(t, brokers, topic, 1, "4", "5", "6") // the group has no offset here
	records, _ := behind(topic)
	require.EqualValues(t, 1+3, records)
}

func TestABrokerThatLoadsItsGroupsIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	load := func(answers int) {
		cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.ListGroups}, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: answers,
		})
	}
	cfg := kafka.Config{Brokers: brokers, RequestTimeout: time.Second}
	load(3)
	_, err := kafka.GroupsBehind(t.Context(), cfg, topic)
	require.NoError(t, err)
	load(-1)
	_, err = kafka.GroupsBehind(t.Context(), cfg, topic)
	require.ErrorIs(t, err, sarama.ErrOffsetsLoadInProgress)
}
