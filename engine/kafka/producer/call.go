package producer

import (
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka"
)

// call is one call of Publish on its way: its records, and what is known of each.
type call struct {
	topic    string
	deadline time.Time
	records  []record
	blocked  map[string]int // keys of which a record failed alone, and its index; owned by the sender

	mu      sync.Mutex
	settled int
	expired bool // Publish has returned: nothing more of it may be sent
	failed  map[int]error
	acked   []bool
	done    chan struct{} // closed when every record is settled
}

// record is one message in the form in which it is sent.
type record struct {
	call  *call
	index int
	key   string // "": no key
	size  int
	data  sarama.Record
}

// newCall settles at once those records that cannot be sent at all.
func newCall(topic string, records []record, deadline time.Time, maxBytes int) *call {
	c := &call{
		topic:    topic,
		deadline: deadline,
		records:  records,
		acked:    make([]bool, len(records)),
		done:     make(chan struct{}),
	}
	for i := range records {
		records[i].call, records[i].index = c, i
	}
	if !kafka.ValidTopic(topic) {
		err := &RecordError{Err: fmt.Errorf("%w: %q", kafka.ErrInvalidTopic, topic), permanent: true}
		for i := range c.records {
			c.fail(&c.records[i], err)
		}
		return c
	}
	for i := range c.records {
		if r := &c.records[i]; r.size+batchOverhead > maxBytes {
			c.fail(r, &RecordError{
				Err: fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, r.size+batchOverhead, maxBytes), permanent: true,
			})
			c.block(r)
		}
	}
	return c
}

// block holds back the records of the same key behind this one; a record without a key has none.
func (c *call) block(r *record) {
	if r.key == "" {
		return
	}
	if c.blocked == nil {
		c.blocked = make(map[string]int)
	}
	if first, ok := c.blocked[r.key]; !ok || r.index < first {
		c.blocked[r.key] = r.index
	}
}

func (c *call) isBlocked(r *record) bool {
	first, ok := c.blocked[r.key]
	return ok && r.index > first
}

func (c *call) ack(r *record) { c.settle(r.index, nil) }

func (c *call) fail(r *record, err *RecordError) { c.settle(r.index, err) }

func (c *call) settle(index int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expired {
		return // Publish has already returned what was known
	}
	if err == nil {
		c.acked[index] = true
	} else {
		c.setFailed(index, err)
	}
	if c.settled++; c.settled == len(c.records) {
		close(c.done)
	}
}

func (c *call) setFailed(index int, err error) {
	if c.failed == nil {
		c.failed = make(map[int]error)
	}
	c.failed[index] = err
}

// isSettled reports whether the record failed before it was ever sent.
func (c *call) isSettled(index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked[index] || c.failed[index] != nil
}

func (c *call) isExpired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// result is called once every record is settled, or the call has expired.
func (c *call) result() error {
	if len(c.failed) == 0 {
		return nil
	}
	return &kafka.PublishError{Topic: c.topic, Failed: c.failed}
}

// expire ends the call early. What is not acknowledged failed with cause; if the call was taken by the sender, its
// outcome is unknown.
func (c *call) expire(cause error, taken bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = true
	err := &RecordError{Err: cause, unknown: taken}
	for i, acked := range c.acked {
		if !acked && c.failed[i] == nil {
			c.setFailed(i, err)
		}
	}
	return c.result()
}
