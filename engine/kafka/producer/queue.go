package producer

import (
	"encoding/binary"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/failure"
)

// Upper bounds of what the record format adds: per batch (its header), per record and per header (their varints).
const (
	batchOverhead  = 61
	recordOverhead = 5*binary.MaxVarintLen32 + binary.MaxVarintLen64 + 1
	headerOverhead = 2 * binary.MaxVarintLen32
)

type topicPartition struct {
	topic     string
	partition int32
}

// partitionQueue is what goes to one partition during a round. At most one batch of it is on its way at any time.
type partitionQueue struct {
	topicPartition
	queue []*record // in order, not yet in a batch

	batch   []*record
	size    int                 // bytes of batch
	request *sarama.RecordBatch // of batch; sent again unchanged until its fate is known
	unknown bool                // an attempt of it may have been appended
	limit   int                 // records per batch while a bad one is being isolated; 0: no limit
	since   time.Time           // of the first failed attempt of this batch
	pauses  failure.Backoff
	retryAt time.Time
}

// fill takes the next batch from the queue: as many records as fit, in order, without those whose call is over or whose
// key is held back. It reports whether there is anything to send.
func (q *partitionQueue) fill(maxBytes int) bool {
	if q.request != nil {
		return true
	}
	if len(q.batch) > 0 {
		// It found no leader and was never sealed. It is taken anew: it must not grow, and a call may be over since.
		q.queue, q.batch = append(q.batch, q.queue...), nil
	}
	taken := 0
	q.size = batchOverhead
	for _, r := range q.queue {
		if r.isSendable() {
			if len(q.batch) > 0 && (q.size+r.size > maxBytes || q.limit > 0 && len(q.batch) == q.limit) {
				break
			}
			q.size += r.size
			q.batch = append(q.batch, r)
		}
		taken++
	}
	q.queue = q.queue[taken:]
	return len(q.batch) > 0
}

// seal turns the batch into the form in which it stays until its fate is known.
func (q *partitionQueue) seal(ids *sequences, cfg *sarama.Config, now time.Time) {
	records := make([]*sarama.Record, len(q.batch))
	for i, r := range q.batch {
		r.data.OffsetDelta = int64(i)
		records[i] = &r.data
	}
	now = now.Truncate(time.Millisecond)
	q.request = &sarama.RecordBatch{
		Version:          2,
		Codec:            cfg.Producer.Compression,
		CompressionLevel: cfg.Producer.CompressionLevel,
		LastOffsetDelta:  int32(len(records) - 1),
		FirstTimestamp:   now,
		MaxTimestamp:     now,
		ProducerID:       ids.producer,
		ProducerEpoch:    ids.epoch,
		FirstSequence:    ids.next[q.topicPartition],
		Records:          records,
	}
}

// clear forgets the batch, whose fate is now known.
func (q *partitionQueue) clear() {
	q.batch, q.request = nil, nil
	q.unknown, q.since, q.retryAt = false, time.Time{}, time.Time{}
}

// fail ends the batch and everything behind it.
func (q *partitionQueue) fail(batch, behind *RecordError) {
	for _, r := range q.batch {
		r.settle(batch)
	}
	for _, r := range q.queue {
		r.settle(behind)
	}
	q.queue = nil
	q.clear()
}
