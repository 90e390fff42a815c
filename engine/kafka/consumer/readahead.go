package consumer

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// readAhead is what a partition holds: the records that it has taken from sarama and not acknowledged, bounded in
// bytes. Sarama's own channel counts records: it would hold hundreds of them, however large, while a handler waits for
// its database.
//
// Half of the bytes may lie ready. That has to be more than the partition's part of an answer: sarama asks a broker
// again when all partitions have taken theirs, so one that took a few at a time would let those starve of which the
// answer had nothing.
type readAhead struct {
	most int           // bytes
	come chan struct{} // says that more lies ready, or that none will for now
	room chan struct{} // says that more may be taken

	mu         sync.Mutex
	held       int                       // bytes
	ready      []*sarama.ConsumerMessage // what the worker has not taken yet
	readyBytes int                       // of these
	full       bool                      // there is no room for the next record
	ended      bool                      // no more will come
}

func newReadAhead(most int) *readAhead {
	return &readAhead{most: most, come: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// run takes records until there are no more or the partition is let go.
func (r *readAhead) run(records <-chan *sarama.ConsumerMessage, leaving <-chan struct{}) {
	defer r.end()
	for {
		select {
		case m, ok := <-records:
			if !ok {
				return
			}
			detach(m)
			for !r.put(m) {
				select {
				case <-r.room:
				case <-leaving:
					return
				}
			}
		case <-leaving:
			return
		}
	}
}

// put makes a record lie ready, or returns false while there is no room for it.
func (r *readAhead) put(m *sarama.ConsumerMessage) bool {
	weight := r.weight(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+weight > r.most {
		r.full = true
		signal(r.come)
		return false
	}
	if len(r.ready) > 0 && r.readyBytes+weight > r.most/2 {
		return false
	}
	r.held += weight
	r.readyBytes += weight
	r.ready = append(r.ready, m)
	signal(r.come)
	return true
}

func (r *readAhead) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	signal(r.come)
}

// take returns up to n of the records that lie ready; they are still held. It reports false when none does nor will.
func (r *readAhead) take(n int) (taken []*sarama.ConsumerMessage, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.ready[:min(n, len(r.ready))]
	if len(first) == 0 {
		return nil, !r.ended
	}
	for _, m := range first {
		r.readyBytes -= r.weight(m)
	}
	taken, r.ready = slices.Clone(first), r.ready[len(first):]
	clear(first) // the array behind ready would keep them
	signal(r.room)
	return taken, true
}

// hold counts a record that was read past sarama, if there is room for it.
func (r *readAhead) hold(m *sarama.ConsumerMessage) bool {
	weight := r.weight(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+weight > r.most {
		return false
	}
	r.held += weight
	return true
}

// release makes room again.
func (r *readAhead) release(weight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= weight
	r.full = false
	signal(r.room)
}

// isEmpty says whether nothing lies ready.
func (r *readAhead) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ready) == 0
}

// isFull says whether the next record has to wait until others are given back.
func (r *readAhead) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full || r.held >= r.most
}

// weight is what a record takes of the bytes. One that is larger than all of them takes them all: it comes by itself.
func (r *readAhead) weight(m *sarama.ConsumerMessage) int { return min(readable(m).size(), r.most) }

// signal leaves a note for the one goroutine that waits for it; a second note would say nothing more.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// comingLimit is how long a batch waits for what is about to come. It comes within microseconds, unless what is left on
// the log is of no interest (control records) or takes another fetch.
const comingLimit = 5 * time.Millisecond

// isComing says whether sarama knows of more records, and there is room for them. It hands them over one by one:
// without a look at where the log ends, the records of one answer would be as many batches as the scheduler likes.
func (w *worker) isComing() bool {
	return w.next < w.claim.HighWaterMarkOffset() && !w.ahead.isFull()
}

// detach copies the record's bytes out of the answer that it came in, which it would keep in memory whole, with the
// records of other partitions. What is nil stays nil.
func detach(m *sarama.ConsumerMessage) {
	n := len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	all := make([]byte, 0, n)
	keep := func(b []byte) []byte {
		if len(b) == 0 {
			return bytes.Clone(b)
		}
		all = append(all, b...)
		return all[len(all)-len(b) : len(all) : len(all)]
	}
	m.Key, m.Value = keep(m.Key), keep(m.Value)
	for _, h := range m.Headers {
		h.Key, h.Value = keep(h.Key), keep(h.Value)
	}
}
