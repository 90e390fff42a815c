package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

const (
	scanBytes = 1 << 20
	// oneBatch asks for a single batch: a broker returns the first one whole.
	oneBatch = 1
	// fetchVersion: before 12, sarama cannot decode an answer without records.
	fetchVersion = 12
)

// Scan calls each for the records that a consumer would get, from one offset to before another. It returns the offset
// after the last one, less than to before an open transaction.
func (c Cluster) Scan(
	topic string, partition int32, from, to int64, each func(*message.Message) error,
) (next int64, err error) {
	return c.scan(topic, partition, from, to, scanBytes, func(r *sarama.ConsumerMessage) error {
		return each(decode(c.ctx, "", r, nil))
	})
}

var errFound = errors.New("found")

// firstOf returns a range's first record for a group, or nil. Transaction marks and compacted offsets are not lag.
func (c Cluster) firstOf(topic string, partition int32, from, to int64) (first *sarama.ConsumerMessage, err error) {
	_, err = c.scan(topic, partition, from, to, oneBatch, func(r *sarama.ConsumerMessage) error {
		first = r
		return errFound
	})
	if errors.Is(err, errFound) {
		return first, nil
	}
	return nil, err
}

func (c Cluster) scan(
	topic string, partition int32, from, to int64, bytes int32, each func(*sarama.ConsumerMessage) error,
) (next int64, err error) {
	for next = from; next < to; {
		if err := c.ctx.Err(); err != nil {
			return next, err
		}
		records, after, err := c.fetch(topic, partition, next, bytes, sarama.ReadCommitted)
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			after, err = c.oldestAfter(topic, partition, next, err)
		}
		if err != nil {
			return next, fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		for _, r := range records {
			if r.Offset >= to {
				break
			}
			if err := each(r); err != nil {
				return r.Offset, err
			}
		}
		if after == next {
			return next, nil
		}
		next = after
	}
	return max(next, to), nil
}

func (c Cluster) oldestAfter(topic string, partition int32, offset int64, outOfRange error) (int64, error) {
	oldest, err := c.Offsets(topic, []int32{partition}, sarama.OffsetOldest)
	if err != nil {
		return 0, err
	}
	if oldest[0] <= offset {
		return 0, outOfRange
	}
	return oldest[0], nil
}

// fetch bypasses sarama's consumer, which does not report the end of the log. next is the offset after the read
// batches.
func (c Cluster) fetch(
	topic string, partition int32, offset int64, bytes int32, isolation sarama.IsolationLevel,
) (records []*sarama.ConsumerMessage, next int64, err error) {
	var block *sarama.FetchResponseBlock
	err = c.settled(topic, func() error {
		leader, epoch, err := c.client.LeaderAndEpoch(topic, partition)
		if err != nil {
			return fmt.Errorf("find leader: %w", err)
		}
		request := &sarama.FetchRequest{
			Version: fetchVersion, MaxBytes: sarama.MaxResponseSize, Isolation: isolation, SessionEpoch: -1,
		}
		request.AddBlock(topic, partition, offset, bytes, epoch)
		answer, err := leader.Fetch(request)
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		if block = answer.GetBlock(topic, partition); block == nil {
			return sarama.ErrIncompleteResponse
		}
		if block.Err != sarama.ErrNoError {
			return block.Err
		}
		return nil
	})
	if err != nil {
		return nil, offset, err
	}
	records, next = extract(topic, partition, offset, block, isolation)
	return records, next, nil
}

// extract: a broker lists aborted transactions for all batches together; with any, extract takes only the first batch.
func extract(
	topic string, partition int32, offset int64, block *sarama.FetchResponseBlock, isolation sarama.IsolationLevel,
) (records []*sarama.ConsumerMessage, next int64) {
	next = offset
	for i, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord || i > 0 && len(block.AbortedTransactions) > 0 {
			break
		}
		next = batch.LastOffset() + 1
		if isolation == sarama.ReadCommitted && batch.Control || aborted(batch, block.AbortedTransactions) {
			continue
		}
		for _, r := range batch.Records {
			m := &sarama.ConsumerMessage{
				Topic: topic, Partition: partition, Offset: batch.FirstOffset + r.OffsetDelta,
				Timestamp: batch.FirstTimestamp.Add(r.TimestampDelta), Key: r.Key, Value: r.Value, Headers: r.Headers,
			}
			if batch.LogAppendTime {
				m.Timestamp = batch.MaxTimestamp
			}
			if m.Offset >= offset {
				records = append(records, m)
			}
		}
	}
	return records, next
}

// aborted: a producer has one transaction at a time, so an aborted one that began before the batch is the batch's.
func aborted(batch *sarama.RecordBatch, transactions []*sarama.AbortedTransaction) bool {
	return batch.IsTransactional && slices.ContainsFunc(transactions, func(t *sarama.AbortedTransaction) bool {
		return t.ProducerID == batch.ProducerID && t.FirstOffset <= batch.FirstOffset
	})
}
