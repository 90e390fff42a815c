package producer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/kafka"
)

// produceVersion is the newest produce request of Kafka 3.6; brokers that know less are asked for less.
const produceVersion = 9

// parcel is one request: the batches of the queues that one broker leads.
type parcel struct {
	broker  *sarama.Broker
	queues  []*partitionQueue
	request *sarama.ProduceRequest
	answer  *sarama.ProduceResponse
	err     error
}

// exchange sends one batch of each queue, all brokers at once, waits for the answers and acts on them.
func (s *sender) exchange(queues []*partitionQueue, deadline time.Time) {
	parcels := s.pack(queues, deadline)
	fault.Here("kafka.before_send")
	var wait sync.WaitGroup
	for _, p := range parcels {
		wait.Go(func() { p.answer, p.err = p.broker.Produce(p.request) })
	}
	wait.Wait()
	fault.Here("kafka.after_send")
	for _, p := range parcels {
		if p.err != nil {
			_ = p.broker.Close()
			p.answer = &sarama.ProduceResponse{}
		}
		for _, q := range p.queues {
			if block := p.answer.GetBlock(q.Topic, q.Partition); block != nil {
				s.act(q, block.Err, deadline)
			} else { // the request may have arrived all the same
				q.unknown = true
				s.retry(q, cmp.Or(p.err, sarama.ErrIncompleteResponse), deadline)
			}
		}
	}
	if len(s.moved) > 0 { // the leaders are looked up again; an error here is the next attempt's error
		_ = s.client.RefreshMetadata(slices.Collect(maps.Keys(s.moved))...)
		clear(s.moved)
	}
}

// pack seals the batches that are not sealed yet, and puts those that go to the same broker together.
func (s *sender) pack(queues []*partitionQueue, deadline time.Time) map[int32]*parcel {
	parcels := make(map[int32]*parcel)
	for _, q := range queues {
		broker, err := s.client.Leader(q.Topic, q.Partition)
		if err != nil {
			s.retry(q, err, deadline)
			continue
		}
		if q.request == nil {
			q.seal(&s.ids, s.sarama, time.Now())
		}
		p := parcels[broker.ID()]
		if p == nil {
			p = &parcel{broker: broker, request: &sarama.ProduceRequest{
				Version:      produceVersion,
				RequiredAcks: s.sarama.Producer.RequiredAcks,
				Timeout:      int32(s.sarama.Producer.Timeout / time.Millisecond),
			}}
			parcels[broker.ID()] = p
		}
		p.queues = append(p.queues, q)
		p.request.AddBatch(q.Topic, q.Partition, q.request)
	}
	return parcels
}

// act decides what becomes of the queue's batch. It knows every answer of a produce request; one that it does not know
// counts as uncertain, the careful side. Where an earlier attempt may be on the log, a refusal does not prove that it
// is not.
func (s *sender) act(q *partitionQueue, answer sarama.KError, deadline time.Time) {
	switch answer {
	case sarama.ErrNoError, sarama.ErrDuplicateSequenceNumber: // it is on the log
		for _, r := range q.records {
			r.settle(isAcknowledged)
		}
		s.ids.use(q.TopicPartition, len(q.records))
		if _, failing := s.failing[q.TopicPartition]; failing {
			delete(s.failing, q.TopicPartition)
			s.log.Info("partition accepts records again", "topic", q.Topic, "partition", q.Partition)
		}
		q.batch = batch{}
	case sarama.ErrNotLeaderForPartition, sarama.ErrLeaderNotAvailable, sarama.ErrUnknownTopicOrPartition,
		sarama.ErrNotEnoughReplicas, sarama.ErrReplicaNotAvailable, sarama.ErrBrokerNotAvailable,
		sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch, sarama.ErrThrottlingQuotaExceeded,
		sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, // an operator gives rights, and takes them
		sarama.ErrInvalidMessage: // "corrupt": a checksum that broke on the way
		s.retry(q, answer, deadline) // it was not appended, and may be later
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrInvalidRecord,
		sarama.ErrInvalidTimestamp: // one of the records is at fault
		if q.unknown {
			s.giveUp(q, answer)
		} else {
			s.isolate(q, answer)
		}
	case sarama.ErrInvalidTopic, sarama.ErrPolicyViolation, sarama.ErrUnsupportedForMessageFormat,
		sarama.ErrUnsupportedCompressionType: // no record of this topic will be taken
		if q.unknown {
			s.giveUp(q, answer)
		} else {
			err := &RecordError{Err: answer, permanent: true}
			q.fail(err, err)
		}
	case sarama.ErrOutOfOrderSequenceNumber: // a gap, which a new epoch heals
		s.giveUp(q, answer)
	case sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch, sarama.ErrInvalidProducerIDMapping,
		sarama.ErrProducerFenced: // the producer id itself may be of no use any more
		s.giveUp(q, answer)
		s.ids.lost = true
	default: // perhaps it was appended: the same batch must be sent again, or given up as unknown
		q.unknown = true
		s.retry(q, answer, deadline)
	}
}

// isolate narrows a refusal down to the record that caused it. The refused batch was not appended, so its sequence
// number is free for the smaller one.
func (s *sender) isolate(q *partitionQueue, answer sarama.KError) {
	if n := len(q.records); n > 1 {
		q.limit = n / 2
		q.queue, q.batch = append(q.records, q.queue...), batch{}
		return
	}
	r := q.records[0]
	err := &RecordError{Err: answer, permanent: true}
	if answer == sarama.ErrMessageSizeTooLarge || answer == sarama.ErrMessageSetSizeTooLarge {
		err.Err = fmt.Errorf("%w: %w", ErrTooLarge, answer)
	}
	r.settle(err)
	r.call.block(r)
	q.limit, q.batch = 0, batch{}
}

// retry keeps the batch for another attempt, or gives the queue up when its time is over.
func (s *sender) retry(q *partitionQueue, cause error, deadline time.Time) {
	s.moved[q.Topic] = struct{}{}
	now := time.Now()
	if q.since.IsZero() {
		q.since, q.pauses = now, retryPauses
	}
	q.retryAt = now.Add(q.pauses.Next())
	_, failing := s.failing[q.TopicPartition]
	if failing || s.closing.Err() != nil || q.retryAt.After(deadline) || q.retryAt.Sub(q.since) > s.cfg.RetryFor {
		s.giveUp(q, cause)
	}
}

// giveUp fails the queue's batch and holds back everything behind it.
func (s *sender) giveUp(q *partitionQueue, cause error) {
	if q.request != nil {
		// Its sequence number may be on the log, or may get there: it must not be used for anything else.
		s.ids.stale = true
	}
	q.fail(&RecordError{Err: cause, unknown: q.unknown}, &RecordError{Err: fmt.Errorf("%w: %w", kafka.ErrNotSent, cause)})
	if _, ok := s.failing[q.TopicPartition]; !ok {
		s.failing[q.TopicPartition] = struct{}{}
		s.log.Warn("partition refuses records", "topic", q.Topic, "partition", q.Partition, "err", cause)
	}
}

// Upper bounds of what the record format adds: per batch (its header), per record and per header (their varints).
const (
	batchOverhead  = 61
	recordOverhead = 5*binary.MaxVarintLen32 + binary.MaxVarintLen64 + 1
	headerOverhead = 2 * binary.MaxVarintLen32
)

// partitionQueue is what goes to one partition during a round. At most one batch of it is on its way at any time.
type partitionQueue struct {
	kafka.TopicPartition
	batch
	queue []*record // in order, not yet in a batch
	limit int       // records per batch while a bad one is being isolated; 0: no limit
}

// batch is forgotten when its fate is known.
type batch struct {
	records []*record
	size    int                 // bytes of them
	request *sarama.RecordBatch // of them; sent again unchanged until its fate is known
	unknown bool                // an attempt of it may have been appended
	since   time.Time           // of the first failed attempt
	pauses  failure.Backoff
	retryAt time.Time
}

// fill takes the next batch from the queue: as many records as fit, in order, without those whose call is over or whose
// key is held back. It reports whether there is anything to send.
func (q *partitionQueue) fill(maxBytes int) bool {
	if q.request != nil {
		return true
	}
	if len(q.records) > 0 {
		// It found no leader and was never sealed. It is taken anew: it must not grow, and a call may be over since.
		q.queue, q.records = append(q.records, q.queue...), nil
	}
	taken := 0
	q.size = batchOverhead
	for _, r := range q.queue {
		if r.isSendable() {
			if len(q.records) > 0 && (q.size+r.size > maxBytes || q.limit > 0 && len(q.records) == q.limit) {
				break
			}
			q.size += r.size
			q.records = append(q.records, r)
		}
		taken++
	}
	q.queue = q.queue[taken:]
	return len(q.records) > 0
}

// seal turns the batch into the form in which it stays until its fate is known.
func (q *partitionQueue) seal(ids *sequences, cfg *sarama.Config, now time.Time) {
	records := make([]*sarama.Record, len(q.records))
	for i, r := range q.records {
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
		FirstSequence:    ids.next[q.TopicPartition],
		Records:          records,
	}
}

// fail ends the batch and everything behind it.
func (q *partitionQueue) fail(cause, behind *RecordError) {
	for _, r := range q.records {
		r.settle(cause)
	}
	for _, r := range q.queue {
		r.settle(behind)
	}
	q.queue, q.batch = nil, batch{}
}
