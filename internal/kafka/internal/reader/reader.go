// Package reader asks brokers past sarama's consumer: what lies at an offset, and what a group has committed. What
// consumes and what administers stand on it.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/kafka"
)

// Reader reads batches, past sarama's consumer and on connections of its own. It finds the partition with the batch
// that cannot be decoded: sarama asks a broker for all partitions at once, and one bad batch fails the whole answer.
// The partitions of a member share it. Sarama has one request at a time on its way to a broker, so one that does not
// answer holds up only its own callers.
type Reader struct {
	brokers  []string
	settings *sarama.Config
	tape     *tape // of its connections; nil: what cannot be read is not wanted

	mu     sync.Mutex
	client sarama.Client
	closed bool
}

// New makes a reader that connects on first use, with the settings given.
func New(brokers []string, settings *sarama.Config) *Reader {
	return &Reader{brokers: brokers, settings: settings}
}

// fetchVersion is that of all fetches; [findRecords] takes their answers apart. Before 12, sarama takes an answer
// without records for one that cannot be decoded.
const fetchVersion = 12

// OneBatch is how many bytes to ask for to get a single batch: a broker returns the first one whole.
const OneBatch = 1

// Found is the batch that holds an offset, and those behind it that were asked for, as far as they are to be delivered.
type Found struct {
	From    int64                     // the offset asked for
	Records []*sarama.ConsumerMessage // from it on; none for control records and aborted transactions
	Next    int64                     // offset behind the batches; From when there is none, or when it is not known
	Damage  error                     // why the first batch cannot be read
	Raw     []byte                    // then what there is of it
	Size    int                       // bytes of all of it
}

var errTruncated = errors.New("fewer records than the batch announces")

// Read asks for about so many bytes. It returns an error when nothing can be said about the batch: no broker, no
// leader, no such offset.
func (r *Reader) Read(at kafka.TopicPartition, offset int64, bytes int32) (found Found, err error) {
	client, err := r.Connected()
	if err != nil {
		return Found{}, err
	}
	if offset < 0 {
		if offset, err = client.GetOffset(at.Topic, at.Partition, offset); err != nil {
			return Found{}, fmt.Errorf("resolve offset: %w", err)
		}
	}
	leader, epoch, err := client.LeaderAndEpoch(at.Topic, at.Partition)
	if err != nil {
		return Found{}, fmt.Errorf("find leader: %w", err)
	}
	request := &sarama.FetchRequest{
		Version: fetchVersion, MaxBytes: kafka.MaxRequestBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	request.AddBlock(at.Topic, at.Partition, offset, bytes, epoch)
	answer, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close() // it is opened again when it is needed
	}
	switch {
	case err == nil:
		block := answer.GetBlock(at.Topic, at.Partition)
		if block == nil {
			return Found{}, sarama.ErrIncompleteResponse
		}
		if block.Err != sarama.ErrNoError {
			_ = client.RefreshMetadata(at.Topic) // perhaps another broker leads
			return Found{}, block.Err
		}
		found = extract(at, offset, block)
	case isTransport(err):
		return Found{}, fmt.Errorf("fetch: %w", err)
	case bytes > OneBatch:
		return r.Read(at, offset, OneBatch) // it is not said which of the batches is damaged
	default:
		found = Found{From: offset, Next: offset, Damage: err}
	}
	if found.Damage != nil && r.tape != nil {
		found.Raw, found.Size = r.tape.records()
	}
	return found, nil
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
	if r.tape != nil {
		r.tape.record(&cfg)
	}
	client, err := sarama.NewClient(r.brokers, &cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	r.client = client
	return client, nil
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

// Commit is a group's offset in a partition and what was noted beside it. The offset is negative when there is none.
type Commit struct {
	Offset   int64
	Metadata string
}

// Committed asks for the group's offsets in partitions, or in all of the topic's, in their order.
func (r *Reader) Committed(group, topic string, partitions ...int32) (found []Commit, err error) {
	client, err := r.Connected()
	if err != nil {
		return nil, err
	}
	if len(partitions) == 0 {
		if partitions, err = client.Partitions(topic); err != nil {
			return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("fetch offsets of %s: %w", group, err), client.RefreshCoordinator(group))
		}
	}()
	coordinator, err := client.Coordinator(group)
	if err != nil {
		return nil, err
	}
	wanted := map[string][]int32{topic: partitions}
	answer, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(client.Config().Version, group, wanted))
	if err != nil {
		_ = coordinator.Close() // it is opened again when it is needed
		return nil, err
	}
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		switch {
		case answer.GroupError() == sarama.ErrGroupIDNotFound:
			found = append(found, Commit{Offset: -1}) // as other brokers say it
		case answer.GroupError() != sarama.ErrNoError:
			return nil, answer.GroupError()
		case block == nil:
			return nil, sarama.ErrIncompleteResponse
		case block.Err != sarama.ErrNoError:
			return nil, block.Err
		default:
			found = append(found, Commit{block.Offset, block.Metadata})
		}
	}
	return found, nil
}

// extract makes of a block what sarama's consumer would. Of transactions that were given up is told of all batches
// together, see aborted: where there are some, it is the first batch alone.
func extract(at kafka.TopicPartition, offset int64, block *sarama.FetchResponseBlock) Found {
	f := Found{From: offset, Next: offset}
	for i, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || i > 0 && (batch.PartialTrailingRecord || len(block.AbortedTransactions) > 0) {
			break
		}
		f.Next = batch.LastOffset() + 1
		if batch.PartialTrailingRecord {
			f.Damage = errTruncated
			break
		}
		if !batch.Control && !aborted(batch, block.AbortedTransactions) {
			f.Records = append(f.Records, recordsOf(at, offset, batch)...)
		}
	}
	return f
}

// recordsOf are the records of a batch, from an offset on.
func recordsOf(at kafka.TopicPartition, offset int64, batch *sarama.RecordBatch) (records []*sarama.ConsumerMessage) {
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
