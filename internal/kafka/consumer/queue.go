package consumer

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka/internal/codec"
)

// entry is what lies on the log, or the gap that a damaged batch leaves there.
type entry struct {
	*sarama.ConsumerMessage
	last   int64 // the last offset it stands for; its own, except for a gap
	weight int   // what it takes of the bytes that its partition may hold: its own, and roughly what is around them
	gap    *gap  // of what cannot be read
}

// decodeAll makes the messages of a batch. What every one of them needs is allocated once for all.
func decodeAll(ctx context.Context, group string, batch []entry) []*message.Message {
	total := 0
	for _, r := range batch {
		total += len(r.Headers)
	}
	pointers := make([]*message.Message, len(batch))
	messages := make([]message.Message, len(batch))
	contexts := make([]cloudevent.OriginContext, len(batch))
	headers := make([]cloudevent.Header, total)
	for i, r := range batch {
		pointers[i] = &messages[i]
		contexts[i].Context = ctx
		own := headers[:len(r.Headers):len(r.Headers)]
		headers = headers[len(r.Headers):]
		codec.Fill(pointers[i], &contexts[i], own, r.ConsumerMessage)
		o := &contexts[i].Origin
		if o.Group, o.LastOffset = group, r.last; r.gap != nil {
			o.Unreadable, o.Damaged, o.DamagedSize = r.gap.why, r.gap.raw, r.gap.size
		}
	}
	return pointers
}

// queue is what a partition holds: the records that it has taken from sarama and not acknowledged, bounded in bytes.
// Sarama's own channel counts records: it would hold hundreds of them, however large, while a handler waits for its
// database.
//
// Half of the bytes may lie ready, behind a batch under way that has the other half at most. That has to be more than
// the partition's part of an answer: sarama asks a broker again when all partitions have taken theirs, so one that took
// a few at a time would let those starve of which the answer had nothing.
type queue struct {
	most int           // bytes
	come chan struct{} // says that more lies ready, or that there is no room for it
	room chan struct{} // says that more may be taken

	mu         sync.Mutex
	entries    []entry // the batch under way, and what lies ready behind it
	bytes      int     // of all of them
	readyBytes int     // of what lies ready
	next       int64   // offset of the next record; negative while none is known
	full       bool    // there is no room for the next record
}

func newQueue(most int, next int64) *queue {
	return &queue{most: most, next: next, come: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// fill takes records until there are no more or the partition is let go.
func (q *queue) fill(records <-chan *sarama.ConsumerMessage, leaving <-chan struct{}) {
	var own detacher
	for {
		var m *sarama.ConsumerMessage
		ok := true
		select {
		case m, ok = <-records: // under load there is one, and to look at leaving, too, would cost as much again
		default:
			select {
			case m, ok = <-records:
			case <-leaving:
				return
			}
		}
		if !ok {
			return
		}
		for e := own.detach(m); ; {
			if _, full := q.put(e); !full {
				break
			}
			select {
			case <-q.room:
			case <-leaving:
				return
			}
		}
	}
}

// put makes a record lie ready, or a gap where the next record is looked for, unless something was put there already:
// sarama delivers what was read past it, too. It is full while there is no room. A record that is larger than all that
// may be held takes it all: it comes by itself.
func (q *queue) put(e entry) (added, full bool) {
	e.weight = min(e.weight, q.most)
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Offset < q.next {
		return false, false
	}
	defer signal(q.come)
	if q.bytes+e.weight > q.most || q.readyBytes > 0 && q.readyBytes+e.weight > q.most/2 {
		q.full = true
		return false, true
	}
	q.entries = append(q.entries, e)
	q.bytes += e.weight
	q.readyBytes += e.weight
	q.next = e.last + 1
	return true, false
}

// take begins a batch: up to n records. They are held until they are released.
func (q *queue) take(n int) []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.entries[:min(n, len(q.entries))]
	for _, e := range batch {
		q.readyBytes -= e.weight
	}
	q.full = false
	signal(q.room)
	return batch
}

// release ends the batch under way: the first n of its records are done, and the others lie ready again.
func (q *queue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries[:n] {
		q.bytes -= e.weight
	}
	q.readyBytes, q.full = q.bytes, false
	q.entries = slices.Delete(q.entries, 0, n)
	signal(q.room)
}

// held is how many records there are.
func (q *queue) held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// expects says whether more is to come of a log that ends there, up to n records, and there is room for it.
func (q *queue) expects(end int64, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next < end && len(q.entries) < n && !q.full
}

// following is the offset of the next record; negative while none is known.
func (q *queue) following() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next
}

// pass notes that there is nothing to take before an offset.
func (q *queue) pass(to int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = max(q.next, to)
}

// signal leaves a note for the one goroutine that waits for it; a second note would say nothing more.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// detachChunk is what records are copied into: an allocation for some dozens of them instead of one for each. Records
// are given back in the order in which they came, so a partition keeps at most two chunks of which not every byte is
// counted.
const detachChunk = 16 << 10

// detacher copies records' bytes out of the answers that they came in. A record would keep its answer in memory whole,
// with the records of other partitions.
type detacher struct{ rest []byte } // of the last chunk

// detach makes an entry of the record, with bytes of its own; what is nil stays nil. A large record has an allocation
// of its own.
func (d *detacher) detach(m *sarama.ConsumerMessage) entry {
	n := len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	var all []byte
	switch {
	case n > detachChunk/4:
		all = make([]byte, 0, n)
	case n > len(d.rest):
		d.rest = make([]byte, detachChunk)
		fallthrough
	default:
		all, d.rest = d.rest[:0:n], d.rest[n:]
	}
	move := func(b []byte) []byte {
		if len(b) == 0 {
			return bytes.Clone(b)
		}
		from := len(all)
		all = append(all, b...)
		return all[from:len(all):len(all)] // nothing can be appended to it over what follows
	}
	m.Key, m.Value = move(m.Key), move(m.Value)
	for _, h := range m.Headers {
		h.Key, h.Value = move(h.Key), move(h.Value)
	}
	return entry{ConsumerMessage: m, last: m.Offset, weight: 256 + 64*len(m.Headers) + n}
}
