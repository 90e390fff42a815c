package consumer

import (
	"bytes"
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
	held       int     // bytes
	ready      []entry // from first on, what the worker has not taken yet
	first      int
	readyBytes int  // of these
	full       bool // there is no room for the next record
	ended      bool // no more will come
}

func newReadAhead(most int) *readAhead {
	return &readAhead{most: most, come: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// run takes records until there are no more or the partition is let go.
func (r *readAhead) run(records <-chan *sarama.ConsumerMessage, leaving <-chan struct{}) {
	defer r.end()
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
		own.detach(m)
		for !r.put(m) {
			select {
			case <-r.room:
			case <-leaving:
				return
			}
		}
	}
}

// put makes a record lie ready, or returns false while there is no room for it.
func (r *readAhead) put(m *sarama.ConsumerMessage) bool {
	e := r.weigh(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+e.weight > r.most {
		r.full = true
		signal(r.come)
		return false
	}
	if r.first < len(r.ready) && r.readyBytes+e.weight > r.most/2 {
		return false
	}
	r.held += e.weight
	r.readyBytes += e.weight
	r.ready = append(r.ready, e)
	signal(r.come)
	return true
}

func (r *readAhead) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	signal(r.come)
}

// take appends up to n of the records that lie ready; they are still held. It reports false when none does nor will.
func (r *readAhead) take(to []entry, n int) (_ []entry, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.ready[r.first:min(r.first+n, len(r.ready))]
	if len(taken) == 0 {
		return to, !r.ended
	}
	for _, e := range taken {
		r.readyBytes -= e.weight
	}
	to = append(to, taken...)
	clear(taken) // the array would keep them
	if r.first += len(taken); r.first > len(r.ready)/2 {
		left := copy(r.ready, r.ready[r.first:])
		clear(r.ready[left:])
		r.ready, r.first = r.ready[:left], 0
	}
	signal(r.room)
	return to, true
}

// hold counts a record that was read past sarama, if there is room for it.
func (r *readAhead) hold(m *sarama.ConsumerMessage) (e entry, ok bool) {
	e = r.weigh(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+e.weight > r.most {
		return e, false
	}
	r.held += e.weight
	return e, true
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
	return r.first == len(r.ready)
}

// isFull says whether the next record has to wait until others are given back.
func (r *readAhead) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full || r.held >= r.most
}

// weigh says what a record takes of the bytes. One that is larger than all of them takes them all: it comes by itself.
func (r *readAhead) weigh(m *sarama.ConsumerMessage) entry {
	e := readable(m)
	e.weight = min(e.size(), r.most)
	return e
}

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

// detachChunk is what records are copied into: an allocation for some dozens of them instead of one for each. Records
// are given back in the order in which they came, so a partition keeps at most two chunks of which not every byte is
// counted.
const detachChunk = 16 << 10

// detacher copies records' bytes out of the answers that they came in. A record would keep its answer in memory whole,
// with the records of other partitions.
type detacher struct{ rest []byte } // of the last chunk

// detach gives the record bytes of its own; what is nil stays nil. A large record has an allocation of its own.
func (d *detacher) detach(m *sarama.ConsumerMessage) {
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
	m.Key, all = moved(m.Key, all)
	m.Value, all = moved(m.Value, all)
	for _, h := range m.Headers {
		h.Key, all = moved(h.Key, all)
		h.Value, all = moved(h.Value, all)
	}
}

// moved copies b to the end of all, from where nothing can be appended to it over what follows.
func moved(b, all []byte) (copied, with []byte) {
	if len(b) == 0 {
		return bytes.Clone(b), all
	}
	from := len(all)
	all = append(all, b...)
	return all[from:len(all):len(all)], all
}
