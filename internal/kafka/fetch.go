package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// fetchVersion is that of all fetches. Before 12, sarama takes an answer without records for one that cannot be
// decoded.
const fetchVersion = 12

// oneBatch is how many bytes to ask for to get a single batch: a broker returns the first one whole.
const oneBatch = 1

// fetched is the batch that holds an offset, and those behind it that were asked for, as far as they are to be
// delivered.
type fetched struct {
	records []*sarama.ConsumerMessage // from the offset on; none for control records and aborted transactions
	next    int64                     // offset behind the batches; the one asked for where there is none
	damage  error                     // why the first batch cannot be read
}

var errTruncated = errors.New("fewer records than the batch announces")

// fetch reads about so many bytes, past sarama's consumer. It returns an error when nothing can be said about the
// batch: no broker, no leader, no such offset.
func (c Cluster) fetch(at TopicPartition, offset int64, bytes int32) (fetched, error) {
	leader, epoch, err := c.client.LeaderAndEpoch(at.Topic, at.Partition)
	if err != nil {
		return fetched{}, fmt.Errorf("find leader: %w", err)
	}
	request := &sarama.FetchRequest{
		Version: fetchVersion, MaxBytes: MaxRequestBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	request.AddBlock(at.Topic, at.Partition, offset, bytes, epoch)
	answer, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
	}
	switch {
	case err == nil:
	case isTransport(err):
		return fetched{}, fmt.Errorf("fetch: %w", err)
	case bytes > oneBatch:
		return c.fetch(at, offset, oneBatch) // it is not said which of the batches is damaged
	default:
		return fetched{next: offset, damage: err}, nil
	}
	block := answer.GetBlock(at.Topic, at.Partition)
	if block == nil {
		return fetched{}, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		_ = c.client.RefreshMetadata(at.Topic) // perhaps another broker leads
		return fetched{}, block.Err
	}
	return extract(at, offset, block), nil
}

// extract makes of a block what sarama's consumer would. Of transactions that were given up is told of all batches
// together, see aborted: where there are some, it is the first batch alone.
func extract(at TopicPartition, offset int64, block *sarama.FetchResponseBlock) fetched {
	f := fetched{next: offset}
	for i, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || i > 0 && (batch.PartialTrailingRecord || len(block.AbortedTransactions) > 0) {
			break
		}
		f.next = batch.LastOffset() + 1
		if batch.PartialTrailingRecord {
			f.damage = errTruncated
			break
		}
		if !batch.Control && !aborted(batch, block.AbortedTransactions) {
			f.records = append(f.records, recordsOf(at, offset, batch)...)
		}
	}
	return f
}

// recordsOf are the records of a batch, from an offset on.
func recordsOf(at TopicPartition, offset int64, batch *sarama.RecordBatch) (records []*sarama.ConsumerMessage) {
	for _, r := range batch.Records {
		m := &sarama.ConsumerMessage{
			Topic: at.Topic, Partition: at.Partition, Offset: batch.FirstOffset + r.OffsetDelta,
			Timestamp: batch.FirstTimestamp.Add(r.TimestampDelta), Key: r.Key, Value: r.Value, Headers: r.Headers,
		}
		if batch.LogAppendTime {
			m.Timestamp = batch.MaxTimestamp
		}
		if m.Offset >= offset {
			records = append(records, m)
		}
	}
	return records
}

// aborted reports whether the batch belongs to a transaction that was given up. A producer has one transaction at a
// time, so one that began before the batch and ends behind it is the batch's.
func aborted(batch *sarama.RecordBatch, transactions []*sarama.AbortedTransaction) bool {
	return batch.IsTransactional && slices.ContainsFunc(transactions, func(t *sarama.AbortedTransaction) bool {
		return t.ProducerID == batch.ProducerID && t.FirstOffset <= batch.FirstOffset
	})
}

// isTransport reports whether an error comes from the way to the broker rather than from what the broker sent.
func isTransport(err error) bool {
	_, isNetwork := errors.AsType[net.Error](err)
	_, isAnswer := errors.AsType[sarama.KError](err)
	return isNetwork || isAnswer || slices.ContainsFunc([]error{
		io.EOF, net.ErrClosed, context.Canceled, sarama.ErrNotConnected, sarama.ErrClosedClient,
		sarama.ErrOutOfBrokers, sarama.ErrShuttingDown, sarama.ErrBrokerNotFound,
	}, func(known error) bool { return errors.Is(err, known) })
}

// scanBytes is how much of a log is asked for at once.
const scanBytes = 1 << 20

// Scan calls each for the records of a partition that a consumer would get, in the order of their offsets, from one
// offset to before another. It returns the offset after the last record that it saw, which is less than to if an open
// transaction lies before it. Damaged batches and records that are deleted while it reads are left out. It ends between
// two requests when the context of [Ask] does.
func (c Cluster) Scan(
	topic string, partition int32, from, to int64, each func(*message.Message) error,
) (next int64, err error) {
	at := TopicPartition{Topic: topic, Partition: partition}
	for next = from; next < to; {
		if err := c.ctx.Err(); err != nil {
			return next, err
		}
		var found fetched
		err := c.settled(topic, func() (err error) {
			found, err = c.fetch(at, next, scanBytes)
			return err
		})
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			// The records there were deleted meanwhile if the first offset lies behind them.
			oldest, unknown := c.client.GetOffset(topic, partition, sarama.OffsetOldest)
			if found.next = oldest; unknown != nil || oldest > next {
				err = unknown
			}
		}
		if err != nil {
			return next, fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		for _, m := range found.records {
			if m.Offset >= to {
				break
			}
			if err := each(decode(c.ctx, "", m)); err != nil {
				return m.Offset, err
			}
		}
		if found.damage != nil {
			found.next = max(found.next, next+1) // behind a batch that says nothing of its end, the next one may be readable
		}
		if found.next == next {
			return next, nil
		}
		next = found.next
	}
	return max(next, to), nil
}
