package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
)

// retryPauses are those between the attempts at a batch.
var retryPauses = failure.Backoff{Min: 50 * time.Millisecond, Max: time.Second}

// sender sends rounds of calls. One goroutine owns it.
type sender struct {
	cfg     kafka.Config
	sarama  *sarama.Config
	client  sarama.Client
	closing context.Context //nolint:containedctx // ends when the publisher is being closed: then what is left fails soon
	log     *slog.Logger

	ids     sequences
	failing map[kafka.TopicPartition]struct{} // gave up last time: one attempt per round until it works again
	moved   map[string]struct{}               // topics whose leaders must be looked up again
	round   uint32                            // where the next records without a key go
	spread  *atomic.Pointer[map[string]int32]

	byHash   sarama.Partitioner
	question sarama.ProducerMessage // for byHash
}

func newSender(
	cfg kafka.Config, keys *atomic.Pointer[map[string]int32], closing context.Context, log *slog.Logger,
) *sender {
	settings := cfg.Producer()
	return &sender{
		cfg:     cfg,
		sarama:  settings,
		spread:  keys,
		closing: closing,
		log:     log,
		failing: make(map[kafka.TopicPartition]struct{}),
		moved:   make(map[string]struct{}),
		byHash:  settings.Producer.Partitioner(""),
	}
}

// send brings every record of the calls to an end: acknowledged, failed, or unknown because its call expired.
func (s *sender) send(calls []*call) {
	deadline := slices.MaxFunc(calls, func(a, b *call) int { return a.deadline.Compare(b.deadline) }).deadline
	if err := s.connect(deadline); err != nil {
		for _, c := range calls {
			c.failAll(&RecordError{Err: err})
		}
		return
	}
	queues := s.byPartition(calls)
	for {
		ready, wake := s.ready(queues, time.Now())
		switch {
		case len(ready) > 0:
			s.exchange(ready, deadline)
		case wake.IsZero():
			s.ids.renew()
			return
		default:
			_ = failure.Sleep(s.closing, time.Until(wake))
		}
	}
}

// connect makes the client and the producer id where there is none, retrying until the deadline.
func (s *sender) connect(deadline time.Time) error {
	for pauses := retryPauses; !s.ids.known; {
		if err := s.tryConnect(); err != nil {
			pause := pauses.Next()
			if time.Now().Add(pause).After(deadline) || s.closing.Err() != nil {
				return fmt.Errorf("connect to brokers: %w", err)
			}
			_ = failure.Sleep(s.closing, pause)
		}
	}
	return nil
}

func (s *sender) tryConnect() (err error) {
	if s.client == nil {
		if s.client, err = sarama.NewClient(s.cfg.Brokers, s.sarama); err != nil {
			return err
		}
	}
	id, err := s.client.InitProducerID()
	if errors.Is(err, sarama.ErrOutOfBrokers) {
		// The client has struck every broker off its list. A new one starts from the configured addresses.
		_ = s.client.Close()
		s.client = nil
	}
	if err == nil && id.Err != sarama.ErrNoError {
		err = id.Err
	}
	if err != nil {
		return fmt.Errorf("request producer id: %w", err)
	}
	s.ids = sequences{producer: id.ProducerID, epoch: id.ProducerEpoch, known: true}
	s.ids.next = make(map[kafka.TopicPartition]int32)
	return nil
}

// byPartition puts the records of the calls into the queues of their partitions, keeping their order.
func (s *sender) byPartition(calls []*call) map[kafka.TopicPartition]*partitionQueue {
	queues := make(map[kafka.TopicPartition]*partitionQueue)
	s.round++
	for _, c := range calls {
		partitions, err := s.partitions(c.topic)
		if err != nil {
			isRefused := errors.Is(err, sarama.ErrInvalidTopic)
			c.failAll(&RecordError{Err: fmt.Errorf("look up partitions: %w", err), permanent: isRefused})
			continue
		}
		for i := range c.records {
			r := &c.records[i]
			tp := kafka.TopicPartition{Topic: c.topic, Partition: s.partitionOf(r, partitions)}
			if queues[tp] == nil {
				queues[tp] = &partitionQueue{TopicPartition: tp}
			}
			queues[tp].queue = append(queues[tp].queue, r)
		}
	}
	return queues
}

// partitions are those that the topic's records may go to; all that there are, unless its keys are spread over fewer.
func (s *sender) partitions(topic string) ([]int32, error) {
	want := int((*s.spread.Load())[topic])
	partitions, err := s.client.Partitions(topic)
	if err == nil && len(partitions) == 0 {
		err = sarama.ErrLeaderNotAvailable
	}
	if err == nil && want > len(partitions) {
		// The client may not have heard yet of the partitions that keys are to be spread over from now on.
		if err = s.client.RefreshMetadata(topic); err == nil {
			partitions, err = s.client.Partitions(topic)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case want > len(partitions):
		return nil, fmt.Errorf("topic %s has %d partitions, its keys are spread over %d", topic, len(partitions), want)
	case want > 0:
		return partitions[:want], nil
	}
	return partitions, nil
}

// partitionOf is where a record belongs: by the hash of its key, as Java clients do it. Records without a key stay
// together within a round, so that they share a batch, and move on with the next.
func (s *sender) partitionOf(r *record, partitions []int32) int32 {
	n := len(partitions)
	if r.key == "" {
		return partitions[s.round%uint32(n)]
	}
	s.question.Key = (*sarama.ByteEncoder)(&r.data.Key) // a pointer: no allocation per record
	choice, err := s.byHash.Partition(&s.question, int32(n))
	if err != nil {
		panic(err) // murmur2 has no error of its own, and the encoder returns none
	}
	return partitions[choice]
}

// ready returns the queues that have something to send now; if there is none, wake is when the next one will, and zero
// when the round is over.
func (s *sender) ready(
	queues map[kafka.TopicPartition]*partitionQueue, now time.Time,
) (ready []*partitionQueue, wake time.Time) {
	closing := s.closing.Err() != nil
	total := 0
	for tp, q := range queues {
		switch {
		case q.retryAt.After(now) && !closing:
			if wake.IsZero() || q.retryAt.Before(wake) {
				wake = q.retryAt
			}
		case !q.fill(s.cfg.MaxMessageBytes):
			delete(queues, tp)
		case total > 0 && total+q.size > kafka.MaxRequestBytes:
			wake = now // the request is full; this queue goes with the next
		default:
			total += q.size
			ready = append(ready, q)
		}
	}
	return ready, wake
}

// sequences hands out the numbers of an idempotent producer: per partition 0, 1, 2 ... under one producer id and epoch.
// A number is used up only by an acknowledged batch; a batch of other content must never get a number that may already
// be on the log, because the broker would take it for a repetition and drop it with a success.
type sequences struct {
	producer int64
	epoch    int16
	known    bool // the id is valid
	stale    bool // raise the epoch before the next round
	lost     bool // the broker no longer knows the id
	next     map[kafka.TopicPartition]int32
}

// maxSequence is far below the point where the numbers would wrap.
const maxSequence = math.MaxInt32 / 2

// use counts the numbers of an acknowledged batch.
func (s *sequences) use(tp kafka.TopicPartition, records int) {
	s.next[tp] += int32(records)
	s.stale = s.stale || s.next[tp] > maxSequence
}

// renew starts a new epoch when that is due, all partitions from 0, or has the next round ask for another id. It is
// called between rounds, when no batch is on its way: a partition that has seen the new epoch refuses the old one. That
// refusal is the point: it stops a batch that was given up but is still in a broker's hands.
func (s *sequences) renew() {
	switch {
	case s.lost, s.stale && s.epoch == math.MaxInt16:
		s.known = false
	case s.stale:
		s.epoch++
		clear(s.next)
	}
	s.lost, s.stale = false, false
}
