package reader

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
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
	reader := New(cluster.ListenAddrs(), kafka.Config{RequestTimeout: time.Hour, PublishTimeout: time.Hour}.Client())
	look := func(partition int32) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := reader.Read(kafka.TopicPartition{Topic: "t", Partition: partition}, 0, OneBatch)
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
	require.NoError(t, reader.Close())
}

func TestExtractLeavesOutHiddenRecords(t *testing.T) {
	t.Parallel()
	at := kafka.TopicPartition{Topic: "t", Partition: 0}
	batch := func(change func(*sarama.RecordBatch)) *sarama.FetchResponseBlock {
		b := &sarama.RecordBatch{
			FirstOffset: 10, LastOffsetDelta: 2, ProducerID: 7, IsTransactional: true,
			Records: []*sarama.Record{{}, {OffsetDelta: 1}, {OffsetDelta: 2}},
		}
		change(b)
		return &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{RecordBatch: b}}}
	}
	plain := extract(at, 11, batch(func(*sarama.RecordBatch) {}))
	require.Len(t, plain.Records, 2)
	require.EqualValues(t, 11, plain.Records[0].Offset)
	require.EqualValues(t, 13, plain.Next)

	control := extract(at, 10, batch(func(b *sarama.RecordBatch) { b.Control = true }))
	require.Equal(t, Found{From: 10, Next: 13}, control)

	for first, shown := range map[int64]int{10: 0, 3: 0, 13: 3} {
		block := batch(func(*sarama.RecordBatch) {})
		block.AbortedTransactions = []*sarama.AbortedTransaction{{ProducerID: 7, FirstOffset: first}}
		require.Len(t, extract(at, 10, block).Records, shown, "a transaction that began at %d", first)
	}
	cut := extract(at, 10, batch(func(b *sarama.RecordBatch) { b.PartialTrailingRecord = true }))
	require.Equal(t, Found{From: 10, Next: 13, Damage: errTruncated}, cut)
	require.Equal(t, Found{From: 10, Next: 10}, extract(at, 10, &sarama.FetchResponseBlock{}))
}
