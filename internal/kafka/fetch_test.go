package kafka

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

func TestExtractLeavesOutHiddenRecords(t *testing.T) {
	t.Parallel()
	batch := func(change func(*sarama.RecordBatch)) *sarama.FetchResponseBlock {
		b := &sarama.RecordBatch{
			FirstOffset: 10, LastOffsetDelta: 2, ProducerID: 7, IsTransactional: true,
			Records: []*sarama.Record{{}, {OffsetDelta: 1}, {OffsetDelta: 2}},
		}
		change(b)
		return &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{RecordBatch: b}}}
	}
	const committed = sarama.ReadCommitted
	records, next := extract("t", 0, 11, batch(func(*sarama.RecordBatch) {}), committed)
	require.Len(t, records, 2)
	require.EqualValues(t, 11, records[0].Offset)
	require.EqualValues(t, 13, next)

	records, next = extract("t", 0, 10, batch(func(b *sarama.RecordBatch) { b.Control = true }), committed)
	require.Empty(t, records)
	require.EqualValues(t, 13, next)

	for first, shown := range map[int64]int{10: 0, 3: 0, 13: 3} {
		block := batch(func(*sarama.RecordBatch) {})
		block.AbortedTransactions = []*sarama.AbortedTransaction{{ProducerID: 7, FirstOffset: first}}
		records, _ = extract("t", 0, 10, block, committed)
		require.Len(t, records, shown, "a transaction that began at %d", first)
	}
	_, next = extract("t", 0, 10, &sarama.FetchResponseBlock{}, committed)
	require.EqualValues(t, 10, next)
}
