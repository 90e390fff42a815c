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

	mu     sync.Mutex
	fates  []*RecordError // of each record; nil: not known yet, and it may be sent
	known  int
	failed bool
	done   chan struct{} // closed when every record is settled by the sender
}

// isAcknowledged is the fate of a record that all in-sync replicas have.
var isAcknowledged = &RecordError{}

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
		topic: topic, deadline: deadline, records: records,
		fates: make([]*RecordError, len(records)), done: make(chan struct{}),
	}
	isTopic := kafka.ValidTopic(topic)
	for i := range records {
		r := &records[i]
		r.call, r.index = c, i
		if !isTopic {
			r.settle(&RecordError{Err: fmt.Errorf("%w: %q", kafka.ErrInvalidTopic, topic), permanent: true})
		} else if size := r.size + batchOverhead; size > maxBytes {
			r.settle(&RecordError{Err: fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, maxBytes), permanent: true})
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

// settle notes the record's fate: [isAcknowledged] or why it failed. The first one counts; when the call has expired
// that was noted by Publish, which has returned.
func (r *record) settle(fate *RecordError) {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fates[r.index] != nil {
		return
	}
	c.fates[r.index] = fate
	c.failed = c.failed || fate != isAcknowledged
	if c.known++; c.known == len(c.records) {
		close(c.done)
	}
}

// isSendable reports whether the record is still to be sent, and fails it if its key is held back.
func (r *record) isSendable() bool {
	r.call.mu.Lock()
	settled := r.call.fates[r.index] != nil
	r.call.mu.Unlock()
	if settled {
		return false
	}
	if first, blocked := r.call.blocked[r.key]; blocked && r.index > first {
		r.settle(&RecordError{Err: kafka.ErrNotSent})
		return false
	}
	return true
}

// failAll fails what is not settled yet.
func (c *call) failAll(err *RecordError) {
	for i := range c.records {
		c.records[i].settle(err)
	}
}

// result is called once every record is settled, or the call has expired.
func (c *call) result() error {
	if !c.failed {
		return nil
	}
	failed := make(map[int]error)
	for i, fate := range c.fates {
		if fate != isAcknowledged {
			failed[i] = fate
		}
	}
	return &kafka.PublishError{Topic: c.topic, Failed: failed}
}

// expire ends the call early. What is not acknowledged failed with cause; if the call was taken by the sender, its
// outcome is unknown.
func (c *call) expire(cause error, taken bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := &RecordError{Err: cause, unknown: taken}
	for i, fate := range c.fates {
		if fate == nil {
			c.fates[i], c.failed = err, true
		}
	}
	return c.result()
}
