package consumer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	kafkaadmin "example.com/twinbox/internal/kafka/admin"
	"example.com/twinbox/test/kafkatest"
)

// A group is behind by what lies before its offsets, and from the beginning where it has none; one that never read the
// topic is not.
func TestGroupsBehind(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := fast(brokers, kafkatest.Group(t))
	topic, other := kafkatest.Topic(t, brokers, 2), kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, other, 0, "1")
	toPartition(t, brokers, topic, 0, "1", "2")
	l := listen(t, cfg, topic)
	read(t, l, 2)
	awaitCommit(t, cfg, topic, 2)
	require.NoError(t, l.Close())
	behind := func(topic string) (records int64, is bool) {
		t.Helper()
		all, err := kafkaadmin.GroupsBehind(t.Context(), kafka.Config{Brokers: brokers}, topic)
		require.NoError(t, err)
		records, is = all[cfg.Group]
		return records, is
	}
	_, is := behind(topic)
	require.False(t, is, "it has read everything")
	_, is = behind(other)
	require.False(t, is, "it reads nothing there")

	toPartition(t, brokers, topic, 0, "3")
	toPartition(t, brokers, topic, 1, "4", "5", "6") // where it has no offset yet
	records, _ := behind(topic)
	require.EqualValues(t, 1+3, records)
}

// A group whose offsets are forgotten reads everything again. One that has members keeps them.
func TestForgetOffsets(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := fast(brokers, kafkatest.Group(t))
	topic := kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, topic, 0, "1", "2")
	l := listen(t, cfg, topic)
	read(t, l, 2)
	awaitCommit(t, cfg, topic, 2)
	require.ErrorIs(t, kafkaadmin.ForgetOffsets(t.Context(), cfg.Config, cfg.Group), kafkaadmin.ErrGroupActive)
	require.NoError(t, l.Close())
	require.NoError(t, kafkaadmin.ForgetOffsets(t.Context(), cfg.Config, "never."+cfg.Group, cfg.Group))
	l = listen(t, cfg, topic)
	read(t, l, 2)
	require.NoError(t, l.Close())
}
