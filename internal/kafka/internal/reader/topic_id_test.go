package reader

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
)

// A broker that does not know the topic for a moment has said nothing about its id: "there is none" would leave the
// partition without its guard for as long as it is read.
func TestATopicThatIsNotKnownNowHasNoOtherID(t *testing.T) {
	t.Parallel()
	at := kafka.TopicPartition{Topic: "t", Partition: 0}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, at.Topic))
	require.NoError(t, err)
	defer cluster.Close()
	reader := New(cluster.ListenAddrs(), kafka.Config{}.Client())
	defer func() { require.NoError(t, reader.Close()) }()
	id, err := reader.TopicID(at)
	require.NoError(t, err)
	require.NotEmpty(t, id)

	away := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Metadata}, Topic: at.Topic, Err: kerr.UnknownTopicOrPartition, Count: 1,
	})
	_, err = reader.TopicID(at)
	require.Equal(t, 1, away.Hits())
	require.ErrorIs(t, err, sarama.ErrUnknownTopicOrPartition)
	again, err := reader.TopicID(at)
	require.NoError(t, err)
	require.Equal(t, id, again)
}
