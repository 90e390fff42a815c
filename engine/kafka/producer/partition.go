package producer

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// byPartition puts the records of the calls into the queues of their partitions, keeping their order.
func (s *sender) byPartition(calls []*call) map[topicPartition]*partitionQueue {
	queues := make(map[topicPartition]*partitionQueue)
	s.round++
	for _, c := range calls {
		partitions, err := s.partitions(c.topic)
		if err != nil {
			failAll(c, topicError(err))
			continue
		}
		partition := s.partitioner(c.topic)
		for i := range c.records {
			r := &c.records[i]
			if c.isSettled(i) {
				continue
			}
			tp := topicPartition{c.topic, partition(r, partitions)}
			if queues[tp] == nil {
				queues[tp] = &partitionQueue{topicPartition: tp}
			}
			queues[tp].queue = append(queues[tp].queue, r)
		}
	}
	return queues
}

// partitions are those that the topic's records may go to.
func (s *sender) partitions(topic string) ([]int32, error) {
	partitions, err := s.client.Partitions(topic)
	if err == nil && len(partitions) == 0 {
		err = sarama.ErrLeaderNotAvailable
	}
	if err != nil {
		return nil, err
	}
	some, err := s.spread.among(topic, partitions)
	if err == nil {
		return some, nil
	}
	// The client may not have heard yet of the partitions that keys are to be spread over from now on.
	if err := s.client.RefreshMetadata(topic); err != nil {
		return nil, err
	}
	if partitions, err = s.client.Partitions(topic); err != nil {
		return nil, err
	}
	return s.spread.among(topic, partitions)
}

// topicError says what it means that a topic's partitions are not known.
func topicError(err error) *RecordError {
	var answer sarama.KError
	if asKError(err, &answer) && judge(answer) == badTopic {
		return &RecordError{Err: fmt.Errorf("look up partitions: %w", err), permanent: true}
	}
	return &RecordError{Err: fmt.Errorf("look up partitions: %w", err)}
}

// keyEncoder hands a key to sarama's partitioner without an allocation per record.
type keyEncoder []byte

func (k *keyEncoder) Encode() ([]byte, error) { return *k, nil }
func (k *keyEncoder) Length() int             { return len(*k) }

// partitioner returns where records of the topic belong: by the hash of their key, as Java clients do it. Records
// without a key stay together within a round, so that they share a batch, and move on with the next.
func (s *sender) partitioner(topic string) func(*record, []int32) int32 {
	byHash := s.partitioners[topic]
	if byHash == nil {
		byHash = s.sarama.Producer.Partitioner(topic)
		s.partitioners[topic] = byHash
	}
	var key keyEncoder
	question := &sarama.ProducerMessage{Topic: topic, Key: &key}
	return func(r *record, partitions []int32) int32 {
		n := len(partitions)
		if r.key == "" {
			return partitions[s.round%uint32(n)]
		}
		key = r.data.Key
		choice, err := byHash.Partition(question, int32(n))
		if err != nil {
			panic(err) // murmur2 has no error of its own, and the encoder returns none
		}
		return partitions[choice]
	}
}

// ready returns the queues that have something to send now; if there is none, wake is when the next one will, and zero
// when the round is over.
func (s *sender) ready(
	queues map[topicPartition]*partitionQueue, now time.Time,
) (ready []*partitionQueue, wake time.Time) {
	closing := s.isClosing()
	total := 0
	for tp, q := range queues {
		switch {
		case q.retryAt.After(now) && !closing:
			if wake.IsZero() || q.retryAt.Before(wake) {
				wake = q.retryAt
			}
		case !q.fill(s.maxBytes(tp.topic)):
			delete(queues, tp)
		case total > 0 && total+q.size() > kafka.MaxRequestBytes:
			wake = now // the request is full; this queue goes with the next
		default:
			total += q.size()
			ready = append(ready, q)
		}
	}
	return ready, wake
}

func (s *sender) maxBytes(topic string) int {
	if limit, ok := s.caps[topic]; ok {
		return limit
	}
	return s.cfg.MaxMessageBytes
}
