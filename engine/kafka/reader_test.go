package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/kafkatest/kfake"
	"example.com/twinbox/dev/kafkatest/kmsg"
)

// A look at a partition whose leader does not answer must not keep the others from theirs: a worker that looks takes no
// records meanwhile, and is not done when its partition is to be let go.
func TestALookWaitsForItsOwnBrokerAlone(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "t"))
	require.NoError(t, err)
	defer cluster.Close()
	for partition := range int32(2) {
		require.NoError(t, cluster.MoveTopicPartition("t", partition, partition))
	}
	asked, release := make(chan struct{}), make(chan struct{})
	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() == 0 {
			close(asked)
			cluster.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	cfg := GroupConfig{Config: Config{Brokers: cluster.ListenAddrs(), RequestTimeout: time.Hour}}.WithDefaults()
	reader := &batchReader{cfg: cfg}
	look := func(partition int32) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := reader.read(topicPartition{"t", partition}, 0)
			done <- err
		}()
		return done
	}
	held := look(0)
	<-asked
	select {
	case err := <-look(1):
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Error("one broker that does not answer holds up the other")
	}
	require.Empty(t, held)
	close(release)
	require.NoError(t, <-held)
	require.NoError(t, reader.close())
}
