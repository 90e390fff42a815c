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

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/kafka"
)

// produceVersion is the newest produce request of Kafka 3.6; brokers that know less are asked for less.
const produceVersion = 9

// parcel is one request: the queues that one broker leads.
type parcel struct {
	broker *sarama.Broker
	queues []*partitionQueue
	answer *sarama.ProduceResponse
	err    error
}

// exchange sends one batch of each queue, all brokers at once, waits for the answers and acts on them.
func (s *sender) exchange(queues []*partitionQueue, deadline time.Time) {
	parcels := s.pack(queues, deadline)
	fault.Here("kafka.before_send")
	var wait sync.WaitGroup
	for _, p := range parcels {
		wait.Go(func() { s.deliver(p) })
	}
	wait.Wait()
	fault.Here("kafka.after_send")
	for _, p := range parcels {
		s.open(p, deadline)
	}
	if len(s.moved) > 0 { // the leaders are looked up again; an error here is the next attempt's error
		_ = s.client.RefreshMetadata(slices.Collect(maps.Keys(s.moved))...)
		clear(s.moved)
	}
}

func (s *sender) pack(queues []*partitionQueue, deadline time.Time) []*parcel {
	byBroker := make(map[int32]*parcel)
	var parcels []*parcel
	for _, q := range queues {
		broker, err := s.client.Leader(q.topic, q.partition)
		if err != nil {
			s.retry(q, err, deadline)
			continue
		}
		if q.request == nil {
			q.seal(&s.ids, s.sarama, time.Now())
		}
		p := byBroker[broker.ID()]
		if p == nil {
			p = &parcel{broker: broker}
			byBroker[broker.ID()] = p
			parcels = append(parcels, p)
		}
		p.queues = append(p.queues, q)
	}
	return parcels
}

func (s *sender) deliver(p *parcel) {
	request := &sarama.ProduceRequest{
		Version:      produceVersion,
		RequiredAcks: s.sarama.Producer.RequiredAcks,
		Timeout:      int32(s.sarama.Producer.Timeout / time.Millisecond),
	}
	for _, q := range p.queues {
		request.AddBatch(q.topic, q.partition, q.request)
	}
	p.answer, p.err = p.broker.Produce(request)
}

// open acts on a broker's answer. Without one the request may have arrived all the same.
func (s *sender) open(p *parcel, deadline time.Time) {
	if p.err != nil {
		_ = p.broker.Close()
		p.answer = &sarama.ProduceResponse{}
	}
	for _, q := range p.queues {
		block := p.answer.GetBlock(q.topic, q.partition)
		if block == nil {
			q.unknown = true
			s.retry(q, cmp.Or(p.err, sarama.ErrIncompleteResponse), deadline)
			continue
		}
		s.act(q, block.Err, deadline)
	}
}

// act decides what becomes of the queue's batch.
func (s *sender) act(q *partitionQueue, answer sarama.KError, deadline time.Time) {
	v := judge(answer)
	if q.unknown && (v == badRecord || v == badTopic) {
		v = outOfStep // an earlier attempt may be on the log: this answer does not prove that it is not
	}
	switch v {
	case acknowledged:
		s.acknowledge(q)
	case retriable:
		s.retry(q, answer, deadline)
	case uncertain:
		q.unknown = true
		s.retry(q, answer, deadline)
	case badRecord:
		s.isolate(q, answer)
	case badTopic:
		err := &RecordError{Err: answer, permanent: true}
		q.fail(err, err)
	case outOfStep:
		s.giveUp(q, answer)
		// The producer id itself may be of no use any more. A gap in the sequence is healed by a new epoch.
		s.ids.lost = s.ids.lost || judge(answer) == outOfStep && answer != sarama.ErrOutOfOrderSequenceNumber
	}
}

func (s *sender) acknowledge(q *partitionQueue) {
	for _, r := range q.batch {
		r.settle(isAcknowledged)
	}
	s.ids.use(q.topicPartition, len(q.batch))
	if _, ok := s.failing[q.topicPartition]; ok {
		delete(s.failing, q.topicPartition)
		s.log.Info("partition accepts records again", "topic", q.topic, "partition", q.partition)
	}
	q.clear()
}

// isolate narrows a refusal down to the record that caused it. The refused batch was not appended, so its sequence
// number is free for the smaller one.
func (s *sender) isolate(q *partitionQueue, answer sarama.KError) {
	if n := len(q.batch); n > 1 {
		q.limit = n / 2
		q.queue = append(q.batch, q.queue...)
		q.clear()
		return
	}
	r := q.batch[0]
	err := &RecordError{Err: answer, permanent: true}
	if answer == sarama.ErrMessageSizeTooLarge || answer == sarama.ErrMessageSetSizeTooLarge {
		err.Err = fmt.Errorf("%w: %w", ErrTooLarge, answer)
	}
	r.settle(err)
	r.call.block(r)
	q.limit = 0
	q.clear()
}

// retry keeps the batch for another attempt, or gives the queue up when its time is over.
func (s *sender) retry(q *partitionQueue, cause error, deadline time.Time) {
	s.moved[q.topic] = struct{}{}
	now := time.Now()
	if q.since.IsZero() {
		q.since, q.pauses = now, retryPauses
	}
	q.retryAt = now.Add(q.pauses.Next())
	_, failing := s.failing[q.topicPartition]
	if failing || s.isClosing() || q.retryAt.After(deadline) || q.retryAt.Sub(q.since) > s.cfg.RetryFor {
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
	if _, ok := s.failing[q.topicPartition]; !ok {
		s.failing[q.topicPartition] = struct{}{}
		s.log.Warn("partition refuses records", "topic", q.topic, "partition", q.partition, "err", cause)
	}
}

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
