package producer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/kafka"
)

const (
	retryBackoff    = 50 * time.Millisecond // before the second attempt; doubles up to maxRetryBackoff
	maxRetryBackoff = time.Second
	minBatchBytes   = 16 << 10 // a topic that takes less is not believed to
)

// sender sends rounds of calls. One goroutine owns it.
type sender struct {
	cfg     kafka.Config
	sarama  *sarama.Config
	client  sarama.Client
	closing <-chan struct{}
	log     *slog.Logger

	ids     sequences
	stale   bool                        // raise the epoch before the next round
	lost    bool                        // the broker no longer knows the producer id
	failing map[topicPartition]struct{} // gave up last time: one attempt per round until it works again
	caps    map[string]int              // batch bytes per topic, where the topic takes less than MaxMessageBytes
	moved   map[string]struct{}         // topics whose leaders must be looked up again
	round   uint32                      // where the next records without a key go
	spread  *spread

	partitioners map[string]sarama.Partitioner
}

func newSender(cfg kafka.Config, keys *spread, closing <-chan struct{}, log *slog.Logger) *sender {
	return &sender{
		cfg:          cfg,
		sarama:       cfg.Producer(),
		spread:       keys,
		closing:      closing,
		log:          log,
		failing:      make(map[topicPartition]struct{}),
		caps:         make(map[string]int),
		moved:        make(map[string]struct{}),
		partitioners: make(map[string]sarama.Partitioner),
	}
}

// send brings every record of the calls to an end: acknowledged, failed, or unknown because its call expired.
func (s *sender) send(calls []*call) {
	deadline := calls[0].deadline
	for _, c := range calls {
		if c.deadline.After(deadline) {
			deadline = c.deadline
		}
	}
	if err := s.connect(deadline); err != nil {
		for _, c := range calls {
			failAll(c, &RecordError{Err: err})
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
			s.settleEpoch()
			return
		default:
			s.pause(wake)
		}
	}
}

// connect makes the client and the producer id, retrying until the deadline.
func (s *sender) connect(deadline time.Time) error {
	for pauses := newPauses(); ; {
		err := s.tryConnect()
		if err == nil {
			return nil
		}
		retryAt := time.Now().Add(pauses.Next())
		if retryAt.After(deadline) || s.isClosing() {
			return fmt.Errorf("connect to brokers: %w", err)
		}
		s.pause(retryAt)
	}
}

func (s *sender) tryConnect() error {
	if s.client == nil {
		client, err := sarama.NewClient(s.cfg.Brokers, s.sarama)
		if err != nil {
			return err
		}
		s.client = client
	}
	err := s.ids.ensure(s.client)
	if errors.Is(err, sarama.ErrOutOfBrokers) {
		// The client has struck every broker off its list. A new one starts from the configured addresses.
		_ = s.client.Close()
		s.client = nil
	}
	return err
}

// settleEpoch runs between rounds, when no batch is on its way.
func (s *sender) settleEpoch() {
	switch {
	case s.lost:
		s.ids.reset()
	case s.stale:
		s.ids.raise()
	}
	s.lost, s.stale = false, false
}

// pause waits, but not when the publisher is closing: then what is left fails soon.
func (s *sender) pause(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

func (s *sender) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *sender) close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

func failAll(c *call, err *RecordError) {
	for i := range c.records {
		if !c.isSettled(i) {
			c.fail(&c.records[i], err)
		}
	}
}

func newPauses() failure.Backoff { return failure.Backoff{Min: retryBackoff, Max: maxRetryBackoff} }
