// Package reader asks brokers past sarama's consumer: what lies at an offset, where a log begins and ends, what a group
// has committed. What consumes and what administers stand on it.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// Reader reads single batches, past sarama's consumer and on connections of its own. It finds the partition with the
// batch that cannot be decoded: sarama asks a broker for all partitions at once, and one bad batch fails the whole
// answer. The partitions of a member share it; one request at a time is on its way to a broker.
type Reader struct {
	brokers  []string
	settings *sarama.Config
	tape     *tape // of its connections; nil: what cannot be read is not wanted // part: batch

	mu     sync.Mutex
	client sarama.Client
	closed bool
	turns  map[int32]*sync.Mutex // by broker: one that does not answer holds up only its own callers
}

// New makes a reader that connects on first use, with the settings given.
func New(brokers []string, settings *sarama.Config) *Reader {
	return &Reader{brokers: brokers, settings: settings}
}

// fetchVersion is that of all fetches; [tapedConn.records] takes their answers apart.
const fetchVersion = 12

// TopicPartition is a partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Found is the batch that holds an offset, as far as it is to be delivered.
type Found struct {
	From    int64                     // the offset asked for
	Records []*sarama.ConsumerMessage // from it on; none for control records and aborted transactions
	Next    int64                     // offset behind the batch; From when there is none, or when it is not known
	Damage  error                     // why the batch cannot be read
	Raw     []byte                    // then what there is of it
	Size    int                       // bytes of all of it
}

var errTruncated = errors.New("fewer records than the batch announces")

// Read returns an error when nothing can be said about the batch: no broker, no leader, no such offset.
func (r *Reader) Read(at TopicPartition, offset int64) (found Found, err error) {
	client, err := r.Connected()
	if err != nil {
		return Found{}, err
	}
	if offset < 0 {
		if offset, err = client.GetOffset(at.Topic, at.Partition, offset); err != nil {
			return Found{}, fmt.Errorf("resolve offset: %w", err)
		}
	}
	leader, block, err := r.fetch(client, at, offset, 1)
	switch {
	case err == nil:
		found = extract(at, offset, block)
	case leader == nil:
		return found, err
	default:
		found = Found{From: offset, Next: offset, Damage: err}
	}
	if found.Damage != nil && r.tape != nil { // part: batch, begin
		found.Raw, found.Size = r.tape.records(leader.Addr())
	} // part: batch, end
	return found, nil
}

// fetch asks for about so many bytes of a partition; a broker returns the first batch whole, however few those are.
// With an error and no leader nothing can be said of what lies there, with a leader it is not to be read.
func (r *Reader) fetch(
	client sarama.Client, at TopicPartition, offset int64, bytes int32,
) (leader *sarama.Broker, block *sarama.FetchResponseBlock, err error) {
	var epoch int32
	leader, end, err := r.turn(func() (leader *sarama.Broker, err error) {
		leader, epoch, err = client.LeaderAndEpoch(at.Topic, at.Partition)
		return leader, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("find leader: %w", err)
	}
	defer end()
	request := &sarama.FetchRequest{
		Version: fetchVersion, MaxBytes: kafka.MaxRequestBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	request.AddBlock(at.Topic, at.Partition, offset, bytes, epoch)
	answer, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
		if isTransport(err) {
			return nil, nil, fmt.Errorf("fetch: %w", err)
		}
		return leader, nil, err
	}
	block = answer.GetBlock(at.Topic, at.Partition)
	if block == nil {
		return nil, nil, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		_ = client.RefreshMetadata(at.Topic) // perhaps another broker leads
		return nil, nil, block.Err
	}
	return leader, block, nil
}

// Connected returns the client, which it connects when there is none yet.
func (r *Reader) Connected() (sarama.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, kafka.ErrClosed
	}
	if r.client != nil {
		return r.client, nil
	}
	cfg := *r.settings
	cfg.Metadata.Retry.Max = 0
	if r.tape != nil { // part: batch, begin
		r.tape.dialer = net.Dialer{Timeout: cfg.Net.DialTimeout, KeepAlive: cfg.Net.KeepAlive}
		r.tape.tls = cfg.Net.TLS.Config
		cfg.Net.TLS.Enable = false
		cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, r.tape
	} // part: batch, end
	client, err := sarama.NewClient(r.brokers, &cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	r.client, r.turns = client, make(map[int32]*sync.Mutex)
	return client, nil
}

// turn waits until no other call asks the broker that find names. It calls find again then, which opens the connection
// if the caller before has closed it, and not if the reader is closed.
func (r *Reader) turn(find func() (*sarama.Broker, error)) (broker *sarama.Broker, end func(), err error) {
	if broker, err = find(); err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	turn := r.turns[broker.ID()]
	if turn == nil {
		turn = &sync.Mutex{}
		r.turns[broker.ID()] = turn
	}
	r.mu.Unlock()
	turn.Lock()
	if broker, err = find(); err != nil {
		turn.Unlock()
		return nil, nil, err
	}
	return broker, turn.Unlock, nil
}

// Close closes the connections. What is under way returns an error, and so does all that is asked later.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.client == nil {
		return nil
	}
	return r.client.Close()
}

// extract makes of a block what sarama's consumer would.
func extract(at TopicPartition, offset int64, block *sarama.FetchResponseBlock) Found {
	if len(block.RecordsSet) == 0 || block.RecordsSet[0].RecordBatch == nil {
		return Found{From: offset, Next: offset}
	}
	batch := block.RecordsSet[0].RecordBatch
	f := Found{From: offset, Next: batch.LastOffset() + 1}
	if batch.PartialTrailingRecord {
		f.Damage = errTruncated
		return f
	}
	if !batch.Control && !aborted(batch, block.AbortedTransactions) {
		f.Records = recordsOf(at, offset, batch)
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
