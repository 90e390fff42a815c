package consumer

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
)

// worker reads a partition and has its records delivered, in order. All of it is one goroutine's.
type worker struct {
	*partition
	pending   []entry         // taken and not acknowledged, in order
	next      int64           // offset of the next record to take; negative while none is known
	pauses    failure.Backoff // between calls that leave something undone; one that gets further begins anew
	suspicion int             // errors of sarama's since the last record
	done      int64           // offset behind what is handled
	stored    int64           // as far as it is stored; see positions.go
	unsure    bool            // whether what was handled since is still in the store
	noted     time.Time
	damaged   bool // a gap is pending, or was: sarama's reader stands before it for ever
}

func newWorker(m *member, session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) *worker {
	return &worker{
		partition: newPartition(m, session, claim), next: claim.InitialOffset(),
		pauses: failure.Backoff{Min: m.cfg.NackBackoff, Max: m.cfg.MaxNackBackoff},
	}
}

// run reads the partition until it is to be let go.
func (w *worker) run() {
	w.own(func() {
		if w.identify() {
			w.work()
		}
	})
}

// work takes records and has them delivered, until the partition is to be let go or has to be read anew.
func (w *worker) work() {
	looks := time.NewTicker(w.member.cfg.LookEvery)
	defer looks.Stop()
	notes, stop := w.member.notes()
	defer stop()
	defer w.note()
	for w.receive(looks.C, notes) {
		giveBack, ok := w.gather()
		if !ok {
			return
		}
		batch := w.batch()
		fault.Here("kafka.taken")
		w.progress.Begin()
		handled, err := w.member.cfg.deliver(w.partition, batch)
		giveBack()
		handled = max(0, min(handled, len(batch)))
		w.acknowledge(handled)
		if handled == len(batch) {
			err = nil
		} else if err == nil {
			err = errIncomplete
		}
		w.progress.End(handled, err)
		if !w.noteSoon() {
			return
		}
		if w.damaged && len(w.pending) == 0 {
			return // what is behind the gap is read from the committed offset on, by a new session
		}
		if err != nil && !w.backOff(err) {
			return
		}
	}
}

// errIncomplete is the error of a handler that has none and leaves something undone.
var errIncomplete = errors.New("not all messages were handled")

// receive waits until something is pending; false when the partition is to be let go.
func (w *worker) receive(looks, notes <-chan time.Time) bool {
	for len(w.pending) == 0 {
		if !w.take() {
			return false
		}
		if len(w.pending) > 0 {
			break
		}
		select {
		case <-w.ahead.come:
		case <-w.leaving:
			return false
		case <-w.suspects:
			w.suspicion++
			w.look()
		case <-looks:
			w.look()
		case <-notes:
			if !w.note() {
				return false
			}
		}
	}
	return true
}

// gather adds what else is there to what is pending and, unless that is a full batch, what comes until it is the
// partition's turn; not ok when the partition is to be let go. The turn is to be given back.
func (w *worker) gather() (giveBack func(), ok bool) {
	giveBack = func() {}
	if !w.fill() {
		return nil, false
	}
	if t := w.member.cfg.turns; t != nil && !w.isFull() {
		if giveBack = t.take(w.leaving); giveBack == nil {
			return nil, false
		}
		if !w.fill() {
			giveBack()
			return nil, false
		}
	}
	return giveBack, true
}

// fill adds what is there or about to come, up to a full batch; false when the partition is to be let go.
func (w *worker) fill() bool {
	var waited <-chan time.Time
	for !w.isFull() && !w.damaged {
		before := len(w.pending)
		if !w.take() {
			return false
		}
		if len(w.pending) > before {
			continue
		}
		if !w.isComing() {
			break
		}
		if waited == nil {
			waited = time.After(comingLimit)
		}
		select {
		case <-w.ahead.come:
			continue
		case <-waited:
		case <-w.leaving:
		}
		break
	}
	return !isClosed(w.leaving)
}

// take adds what lies ready to what is pending, up to a full batch; false when none does nor will.
func (w *worker) take() (more bool) {
	for before := len(w.pending); len(w.pending) == before; w.progress.Received() {
		held, more := w.ahead.take(w.pending, w.member.cfg.Batch-before)
		if len(held) == before {
			return more
		}
		w.pending = held[:before]
		for _, r := range held[before:] {
			w.add(r) // where it lies, or before that
		}
		clear(held[len(w.pending):])
	}
	return true
}

// isFull says whether no more is to be taken before some of it is handled: it would only lie here.
func (w *worker) isFull() bool { return len(w.pending) >= w.member.cfg.Batch }

// add appends a record that is held, unless it was already read past sarama.
func (w *worker) add(r entry) {
	if r.Offset < w.next {
		w.ahead.release(r.weight)
		return
	}
	w.next, w.suspicion = r.Offset+1, 0
	w.pending = append(w.pending, r)
}

// batch is as much of what is pending as one call may get.
func (w *worker) batch() []entry { return w.pending[:min(len(w.pending), w.member.cfg.Batch)] }

// acknowledge marks the first n pending records as done and forgets them.
func (w *worker) acknowledge(n int) {
	if n == 0 {
		return
	}
	w.pauses.Reset()
	if w.done = w.pending[n-1].last + 1; w.member.cfg.Positions == nil {
		w.stored = w.done
		w.mark(w.done)
	}
	weight := 0
	for _, r := range w.pending[:n] {
		weight += r.weight
	}
	w.ahead.release(weight)
	left := copy(w.pending, w.pending[n:])
	clear(w.pending[left:])
	w.pending = w.pending[:left]
}

// backOff waits before what is left is handed over again; false when the partition is to be let go.
func (w *worker) backOff(err error) bool {
	if isClosed(w.leaving) {
		return false // and the error, if there is one, is most often that
	}
	if !w.pauses.Began() {
		w.log.Warn("handle messages, trying again", "offset", w.pending[0].Offset, "error", err)
	}
	return pauseUntil(w.leaving, w.pauses.Next())
}
