package producer

import (
	"fmt"
	"math"

	"github.com/IBM/sarama"
)

// sequence identifies a batch to the broker, which drops a repetition of it.
type sequence struct {
	producer int64
	epoch    int16
	first    int32
}

// sequences hands out the numbers of an idempotent producer: per partition 0, 1, 2 ... under one producer id and epoch.
// A number is used up only by an acknowledged batch; a batch of other content must never get a number that may already
// be on the log, because the broker would take it for a repetition and drop it with a success.
type sequences struct {
	producer int64
	epoch    int16
	known    bool // the id is valid
	next     map[topicPartition]int32
}

// maxSequence is far below the point where the numbers would wrap.
const maxSequence = math.MaxInt32 / 2

// ensure asks the cluster for a producer id if there is none.
func (s *sequences) ensure(client sarama.Client) error {
	if s.known {
		return nil
	}
	answer, err := client.InitProducerID()
	if err != nil {
		return fmt.Errorf("request producer id: %w", err)
	}
	if answer.Err != sarama.ErrNoError {
		return fmt.Errorf("request producer id: %w", answer.Err)
	}
	s.producer, s.epoch, s.known = answer.ProducerID, answer.ProducerEpoch, true
	s.next = make(map[topicPartition]int32)
	return nil
}

func (s *sequences) at(tp topicPartition) sequence {
	return sequence{producer: s.producer, epoch: s.epoch, first: s.next[tp]}
}

// used reports whether the epoch must be raised before the numbers of the partition run out.
func (s *sequences) used(tp topicPartition, records int) (exhausted bool) {
	s.next[tp] += int32(records)
	return s.next[tp] > maxSequence
}

// raise starts a new epoch, all partitions from 0. It must be called between rounds, when no batch is on its way: a
// partition that has seen the new epoch refuses the old one. That refusal is the point: it stops a batch that was given
// up but is still in a broker's hands.
func (s *sequences) raise() {
	if s.epoch == math.MaxInt16 {
		s.reset()
		return
	}
	s.epoch++
	clear(s.next)
}

// reset gives up the producer id; the next round asks for another.
func (s *sequences) reset() { s.known = false }
