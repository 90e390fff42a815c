package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/kafkatest/kerr"
	"example.com/twinbox/dev/kafkatest/kfake"
	"example.com/twinbox/dev/kafkatest/kmsg"
)

// A partition whose topic cannot be told from another is not read. For a while that is an election; then it has to be
// said, for nothing else would.
func TestAPartitionThatCannotBeIdentifiedIsUnhealthy(t *testing.T) {
	t.Parallel()
	cfg := quick(1, 0)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg.Now = func() time.Time { return now }
	m := newMember(context.Background(), cfg, orDiscard(nil))
	defer m.cancel()
	m.reader = &batchReader{cfg: GroupConfig{Config: Config{Brokers: []string{"127.0.0.1:1"}}}.WithDefaults()}
	defer func() { require.NoError(t, m.reader.close()) }()
	session := newFakeSession(1)
	p := newWorker(m, session, session)
	identified := make(chan bool)
	go func() { identified <- p.identify() }()
	require.Eventually(t, func() bool {
		p.progress.mu.Lock()
		defer p.progress.mu.Unlock()
		return !p.progress.refused.IsZero()
	}, time.Minute, time.Millisecond)
	close(p.leaving)
	require.False(t, <-identified)
	require.NoError(t, p.healthy())
	now = now.Add(cfg.UnhealthyAfter + time.Second)
	require.ErrorContains(t, p.healthy(), "cannot be read")
}

// A broker that does not know the topic for a moment has said nothing about its id: "there is none" would leave the
// partition without its guard for as long as it is read.
func TestATopicThatIsNotKnownNowHasNoOtherID(t *testing.T) {
	t.Parallel()
	at := topicPartition{"t", 0}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, at.topic))
	require.NoError(t, err)
	defer cluster.Close()
	reader := &batchReader{cfg: GroupConfig{Config: Config{Brokers: cluster.ListenAddrs()}}.WithDefaults()}
	defer func() { require.NoError(t, reader.close()) }()
	id, err := reader.topicID(at)
	require.NoError(t, err)
	require.NotEmpty(t, id)

	away := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Topic: at.topic, Err: kerr.UnknownTopicOrPartition, Count: 1,
	})
	_, err = reader.topicID(at)
	require.Equal(t, 1, away.Hits())
	require.ErrorIs(t, err, sarama.ErrUnknownTopicOrPartition)
	again, err := reader.topicID(at)
	require.NoError(t, err)
	require.Equal(t, id, again)
}
