package reader

import "github.com/IBM/sarama"

// scanBytes is how much is asked for at once.
const scanBytes = 1 << 20

// ReadMany reads several batches at once. Where one of them is damaged or of a transaction that was given up, which is
// told of all of them together, it reads a single one.
func (r *Reader) ReadMany(
	at TopicPartition, offset int64,
) (records []*sarama.ConsumerMessage, next int64, err error) {
	client, err := r.Connected()
	if err != nil {
		return nil, offset, err
	}
	leader, block, err := r.fetch(client, at, offset, scanBytes)
	if err != nil && leader == nil {
		return nil, offset, err
	}
	next = offset
	if err == nil && len(block.AbortedTransactions) == 0 {
		for _, set := range block.RecordsSet {
			if set.RecordBatch == nil || set.RecordBatch.PartialTrailingRecord {
				break
			}
			if !set.RecordBatch.Control {
				records = append(records, recordsOf(at, offset, set.RecordBatch)...)
			}
			next = set.RecordBatch.LastOffset() + 1
		}
	}
	if next > offset {
		return records, next, nil
	}
	f, err := r.Read(at, offset)
	if err != nil {
		return nil, offset, err
	}
	if f.Damage != nil {
		f.Next = max(f.Next, offset+1) // behind a batch that says nothing of its end, the next offset may be readable
	}
	return f.Records, f.Next, nil
}
