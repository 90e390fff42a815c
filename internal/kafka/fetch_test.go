package kafka

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

func TestExtractLeavesOutHiddenRecords(t *testing.T) {
	t.Parallel()
	at := TopicPartition{Topic: "t", Partition: 0}
	batch := func(change func(*sarama.RecordBatch)) *sarama.FetchResponseBlock {
		b := &sarama.RecordBatch{
			FirstOffset: 10, LastOffsetDelta: 2, ProducerID: 7, IsTransactional: true,
			Records: []*sarama.Record{{}, {OffsetDelta: 1}, {OffsetDelta: 2}},
		}
		change(b)
		return &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{RecordBatch: b}}}
	}
	plain := extract(at, 11, batch(func(*sarama.RecordBatch) {}))
	require.Len(t, plain.records, 2)
	require.EqualValues(t, 11, plain.records[0].Offset)
	require.EqualValues(t, 13, plain.next)

	control := extract(at, 10, batch(func(b *sarama.RecordBatch) { b.Control = true }))
	require.Equal(t, fetched{next: 13}, control)

	for first, shown := range map[int64]int{10: 0, 3: 0, 13: 3} {
		block := batch(func(*sarama.RecordBatch) {})
		block.AbortedTransactions = []*sarama.AbortedTransaction{{ProducerID: 7, FirstOffset: first}}
		require.Len(t, extract(at, 10, block).records, shown, "a transaction that began at %d", first)
	}
	cut := extract(at, 10, batch(func(b *sarama.RecordBatch) { b.PartialTrailingRecord = true }))
	require.Equal(t, fetched{next: 13, damage: errTruncated}, cut)
	require.Equal(t, fetched{next: 10}, extract(at, 10, &sarama.FetchResponseBlock{}))
}
