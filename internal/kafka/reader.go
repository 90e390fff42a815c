package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/IBM/sarama"
)

// batchReader reads single batches, past sarama's consumer and on connections of its own. It is what can tell which
// partition holds what nobody can decode: sarama asks a broker for all partitions at once, and one bad batch fails the
// whole answer.
type batchReader struct {
	cfg GroupConfig

	mu     sync.Mutex
	client sarama.Client
	closed bool
}

// found is the batch that holds an offset, as far as it is to be delivered.
type found struct {
	from    int64                     // the offset asked for
	records []*sarama.ConsumerMessage // from it on; none for control records and aborted transactions
	next    int64                     // offset behind the batch; from when there is none, or when it is not known
	damage  error                     // why the batch cannot be read
}

var errTruncated = errors.New("fewer records than the batch announces")

// read returns an error when nothing can be said about the batch: no broker, no leader, no such offset.
func (r *batchReader) read(at topicPartition, offset int64) (found, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client, err := r.connected()
	if err != nil {
		return found{}, err
	}
	if offset < 0 {
		if offset, err = client.GetOffset(at.topic, at.partition, offset); err != nil {
			return found{}, fmt.Errorf("resolve offset: %w", err)
		}
	}
	leader, epoch, err := client.LeaderAndEpoch(at.topic, at.partition)
	if err != nil {
		return found{}, fmt.Errorf("find leader: %w", err)
	}
	// A broker returns the first batch whole, however little was asked for, and nothing behind it.
	request := &sarama.FetchRequest{
		Version: 12, MaxBytes: maxRequestBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	request.AddBlock(at.topic, at.partition, offset, 1, epoch)
	answer, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
		if isTransport(err) {
			return found{}, fmt.Errorf("fetch: %w", err)
		}
		return found{from: offset, next: offset, damage: err}, nil
	}
	block := answer.GetBlock(at.topic, at.partition)
	if block == nil {
		return found{}, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		_ = client.RefreshMetadata(at.topic) // perhaps another broker leads
		return found{}, block.Err
	}
	return extract(at, offset, block), nil
}

func (r *batchReader) connected() (sarama.Client, error) {
	if r.closed {
		return nil, ErrClosed
	}
	if r.client != nil {
		return r.client, nil
	}
	cfg := r.cfg.base()
	cfg.Metadata.Retry.Max = 0
	client, err := sarama.NewClient(r.cfg.Brokers, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	r.client = client
	return client, nil
}

func (r *batchReader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.client == nil {
		return nil
	}
	return r.client.Close()
}

// extract makes of a block what sarama's consumer would.
func extract(at topicPartition, offset int64, block *sarama.FetchResponseBlock) found {
	if len(block.RecordsSet) == 0 || block.RecordsSet[0].RecordBatch == nil {
		return found{from: offset, next: offset}
	}
	batch := block.RecordsSet[0].RecordBatch
	f := found{from: offset, next: batch.LastOffset() + 1}
	if batch.PartialTrailingRecord {
		f.damage = errTruncated
		return f
	}
	if batch.Control || aborted(batch, block.AbortedTransactions) {
		return f
	}
	for _, r := range batch.Records {
		m := &sarama.ConsumerMessage{
			Topic: at.topic, Partition: at.partition, Offset: batch.FirstOffset + r.OffsetDelta,
			Timestamp: batch.FirstTimestamp.Add(r.TimestampDelta), Key: r.Key, Value: r.Value, Headers: r.Headers,
		}
		if batch.LogAppendTime {
			m.Timestamp = batch.MaxTimestamp
		}
		if m.Offset >= offset {
			f.records = append(f.records, m)
		}
	}
	return f
}

// aborted reports whether the batch belongs to a transaction that was given up. A producer has one transaction at a
// time, so one that began before the batch and ends behind it is the batch's.
func aborted(batch *sarama.RecordBatch, transactions []*sarama.AbortedTransaction) bool {
	for _, t := range transactions {
		if batch.IsTransactional && t.ProducerID == batch.ProducerID && t.FirstOffset <= batch.FirstOffset {
			return true
		}
	}
	return false
}

// isTransport reports whether an error comes from the way to the broker rather than from what the broker sent.
func isTransport(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[sarama.KError](err); ok {
		return true
	}
	for _, known := range []error{
		io.EOF, net.ErrClosed, context.Canceled, sarama.ErrNotConnected, sarama.ErrClosedClient,
		sarama.ErrOutOfBrokers, sarama.ErrShuttingDown, sarama.ErrBrokerNotFound,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
