package producer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/kafka"
)

// produceVersion is the newest produce request of Kafka 3.6; brokers that know less are asked for less.
const produceVersion = 9

// parcel is one request: the lanes that one broker leads.
type parcel struct {
	broker *sarama.Broker
	lanes  []*lane
	answer *sarama.ProduceResponse
	err    error
}

// exchange sends one batch of each lane, all brokers at once, waits for the answers and acts on them.
func (s *sender) exchange(lanes []*lane, deadline time.Time) {
	parcels := s.pack(lanes, deadline)
	fault.Here("kafka.before_send")
	var wait sync.WaitGroup
	for i, p := range parcels {
		if i == len(parcels)-1 { // the usual case is one broker, and needs no goroutine
			s.deliver(p)
			continue
		}
		wait.Go(func() { s.deliver(p) })
	}
	wait.Wait()
	fault.Here("kafka.after_send")
	for _, p := range parcels {
		s.open(p, deadline)
	}
	s.refresh()
}

func (s *sender) pack(lanes []*lane, deadline time.Time) []*parcel {
	byBroker := make(map[int32]*parcel)
	var parcels []*parcel
	for _, l := range lanes {
		broker, err := s.client.Leader(l.topic, l.partition)
		if err != nil {
			s.retry(l, err, deadline)
			continue
		}
		if l.request == nil {
			l.seal(s.ids.at(l.topicPartition), s.sarama, time.Now())
		}
		p := byBroker[broker.ID()]
		if p == nil {
			p = &parcel{broker: broker}
			byBroker[broker.ID()] = p
			parcels = append(parcels, p)
		}
		p.lanes = append(p.lanes, l)
	}
	return parcels
}

func (s *sender) deliver(p *parcel) {
	request := &sarama.ProduceRequest{
		Version:      produceVersion,
		RequiredAcks: s.sarama.Producer.RequiredAcks,
		Timeout:      int32(s.sarama.Producer.Timeout / time.Millisecond),
	}
	for _, l := range p.lanes {
		request.AddBatch(l.topic, l.partition, l.request)
	}
	p.answer, p.err = p.broker.Produce(request)
}

// open acts on a broker's answer.
func (s *sender) open(p *parcel, deadline time.Time) {
	if p.err != nil {
		// The request may have arrived, whatever became of the connection.
		_ = p.broker.Close()
		for _, l := range p.lanes {
			l.unknown = true
			s.retry(l, p.err, deadline)
		}
		return
	}
	for _, l := range p.lanes {
		block := p.answer.GetBlock(l.topic, l.partition)
		if block == nil {
			l.unknown = true
			s.retry(l, sarama.ErrIncompleteResponse, deadline)
			continue
		}
		s.act(l, block.Err, deadline)
	}
}

// act decides what becomes of the lane's batch.
func (s *sender) act(l *lane, answer sarama.KError, deadline time.Time) {
	v := judge(answer)
	if l.unknown && (v == badRecord || v == badTopic || v == outOfStep) {
		// An earlier attempt may be on the log: this answer does not prove that it is not.
		s.giveUp(l, answer)
		s.lost = s.lost || forgotten(answer)
		return
	}
	switch v {
	case acknowledged:
		s.acknowledge(l)
	case retriable:
		s.retry(l, answer, deadline)
	case uncertain:
		l.unknown = true
		s.retry(l, answer, deadline)
	case badRecord:
		s.isolate(l, answer)
	case badTopic:
		s.refuse(l, answer)
	case outOfStep:
		s.giveUp(l, answer)
		s.lost = s.lost || forgotten(answer)
	}
}

func (s *sender) acknowledge(l *lane) {
	for _, r := range l.batch {
		r.call.ack(r)
	}
	if s.ids.used(l.topicPartition, len(l.batch)) {
		s.stale = true
	}
	if _, ok := s.failing[l.topicPartition]; ok {
		delete(s.failing, l.topicPartition)
		s.log.Info("partition accepts records again", "topic", l.topic, "partition", l.partition)
	}
	l.clear()
}

// isolate narrows a refusal down to the record that caused it. The refused batch was not appended, so its sequence
// number is free for the smaller one.
func (s *sender) isolate(l *lane, answer sarama.KError) {
	if n := len(l.batch); n > 1 {
		if half := l.size() / 2; tooLarge(answer) && half >= minBatchBytes {
			s.caps[l.topic] = half
		} else {
			l.limit = n / 2
		}
		l.unfill()
		return
	}
	r := l.batch[0]
	err := &RecordError{Err: answer, permanent: true}
	if tooLarge(answer) {
		err.Err = fmt.Errorf("%w: %w", ErrTooLarge, answer)
	}
	r.call.fail(r, err)
	r.call.block(r)
	l.limit = 0
	l.clear()
}

// refuse fails everything in the lane for good.
func (s *sender) refuse(l *lane, answer sarama.KError) {
	err := &RecordError{Err: answer, permanent: true}
	for _, r := range append(l.batch, l.queue...) {
		r.call.fail(r, err)
	}
	l.queue = nil
	l.clear()
}

// retry keeps the batch for another attempt, or gives the lane up when its time is over.
func (s *sender) retry(l *lane, cause error, deadline time.Time) {
	s.moved[l.topic] = struct{}{}
	now := time.Now()
	if l.since.IsZero() {
		l.since, l.pauses = now, newPauses()
	}
	l.retryAt = now.Add(l.pauses.Next())
	_, failing := s.failing[l.topicPartition]
	if failing || s.isClosing() || l.retryAt.After(deadline) || l.retryAt.Sub(l.since) > s.cfg.RetryFor {
		s.giveUp(l, cause)
	}
}

// refresh looks the leaders up again after a failure. An error here is the next attempt's error.
func (s *sender) refresh() {
	if len(s.moved) > 0 {
		_ = s.client.RefreshMetadata(slices.Collect(maps.Keys(s.moved))...)
		clear(s.moved)
	}
}

// giveUp fails the lane's batch and holds back everything behind it.
func (s *sender) giveUp(l *lane, cause error) {
	if l.request != nil {
		// Its sequence number may be on the log, or may get there: it must not be used for anything else.
		s.stale = true
	}
	err := &RecordError{Err: cause, unknown: l.unknown}
	for _, r := range l.batch {
		r.call.fail(r, err)
	}
	behind := &RecordError{Err: fmt.Errorf("%w: %w", kafka.ErrNotSent, cause)}
	for _, r := range l.queue {
		r.call.fail(r, behind)
	}
	l.queue = nil
	l.clear()
	if _, ok := s.failing[l.topicPartition]; !ok {
		s.failing[l.topicPartition] = struct{}{}
		s.log.Warn("partition refuses records", "topic", l.topic, "partition", l.partition, "err", cause)
	}
}

func asKError(err error, target *sarama.KError) bool { return errors.As(err, target) }
