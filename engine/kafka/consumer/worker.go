package consumer

import (
	"errors"
	"sync"
	"time"

	"example.com/twinbox/engine/fault"
)

// work has the partition's records delivered, in order, until the partition is to be let go or has to be read anew.
func (p *partition) work() {
	looks := time.NewTicker(p.member.cfg.LookEvery)
	defer looks.Stop()
	// A partition under load notes as often as makes a crash repeat no more than a commit interval, since what is stored
	// is committed as often; one at rest with each batch.
	noteEvery := p.member.cfg.CommitInterval / 2
	notes := time.NewTicker(noteEvery)
	defer notes.Stop()
	defer p.note()
	for p.receive(looks.C, notes.C) {
		giveBack, ok := p.gather()
		if !ok {
			return
		}
		batch := p.queue.take(p.member.cfg.Batch)
		p.suspicion = 0
		p.progress.Received()
		fault.Here("kafka.taken")
		p.progress.Begin()
		handled, err := p.member.deliver(p, batch)
		giveBack()
		switch handled = max(0, min(handled, len(batch))); {
		case handled == len(batch):
			err = nil
		case err == nil:
			err = errIncomplete
		}
		failed := batch[min(handled, len(batch)-1)].Offset // if there is an error; what is released is no longer here
		p.acknowledge(batch[:handled])
		p.progress.End(handled, err)
		if time.Since(p.noted) >= noteEvery && !p.note() {
			return
		}
		if left, _ := p.queue.held(); left == 0 && p.damaged {
			return // what is behind the gap is read from the committed offset on, by a new session
		}
		if err != nil && !p.backOff(failed, err) {
			return
		}
	}
}

// errIncomplete is the error of a handler that has none and leaves something undone.
var errIncomplete = errors.New("not all messages were handled")

// receive waits until something is held; false when the partition is to be let go.
func (p *partition) receive(looks, notes <-chan time.Time) bool {
	for {
		if n, over := p.queue.held(); n > 0 || over {
			return n > 0
		}
		select {
		case <-p.queue.come:
		case <-p.leaving:
			return false
		case <-p.suspects:
			p.suspicion++
			p.look()
		case <-looks:
			p.look()
		case <-notes:
			if !p.note() {
				return false
			}
		}
	}
}

// gather waits for what is about to come and, unless that makes a full batch, until it is the partition's turn; what
// comes meanwhile is in the batch, too. It is not ok when the partition is to be let go. The turn is to be given back.
func (p *partition) gather() (giveBack func(), ok bool) {
	giveBack = func() {}
	p.awaitComing()
	if n, _ := p.queue.held(); n < p.member.cfg.Batch {
		if giveBack = p.member.turns.take(p.leaving); giveBack == nil {
			return nil, false
		}
	}
	if _, over := p.queue.held(); over || isClosed(p.leaving) {
		giveBack()
		return nil, false
	}
	return giveBack, true
}

// comingLimit is how long a batch waits for what is about to come. It comes within microseconds, unless what is left on
// the log is of no interest (control records) or takes another fetch.
const comingLimit = 5 * time.Millisecond

// awaitComing waits while sarama knows of more records and there is room for them, up to a full batch. It hands them
// over one by one: without a look at where the log ends, the records of one answer would be as many batches as the
// scheduler likes.
func (p *partition) awaitComing() {
	var waited <-chan time.Time
	for !p.damaged && p.queue.expects(p.claim.HighWaterMarkOffset(), p.member.cfg.Batch) {
		if waited == nil {
			waited = time.After(comingLimit)
		}
		select {
		case <-p.queue.come:
		case <-waited:
			return
		case <-p.leaving:
			return
		}
	}
}

// acknowledge marks the first records of the batch as done, and gives the rest back.
func (p *partition) acknowledge(handled []entry) {
	if n := len(handled); n > 0 {
		p.pauses.Reset()
		if p.done = handled[n-1].last + 1; p.member.cfg.Positions == nil {
			p.stored = p.done
			p.mark(p.done)
		}
	}
	p.queue.release(len(handled))
}

// backOff waits before what is left is handed over again; false when the partition is to be let go.
func (p *partition) backOff(offset int64, err error) bool {
	if isClosed(p.leaving) {
		return false // and the error, if there is one, is most often that
	}
	if !p.pauses.Began() {
		p.log.Warn("handle messages, trying again", "offset", offset, "error", err)
	}
	return pauseUntil(p.leaving, p.pauses.Next())
}

// turns lets so many partitions at a time hand over what they have, and the others wait: what they receive meanwhile
// shares their next call. Without it every record that arrives alone would get a call, and so a transaction, of its
// own, and most of them just when the machine has no time for them. A partition that has a full batch does not ask.
//
// A call that lasts keeps its partition busy but not its turn: a handler that is slow, hangs or waits for a database
// must not hold up the other partitions.
type turns struct {
	free  chan struct{} // a place for each turn that is taken
	limit time.Duration
}

// turnLimit is how long a call may keep its turn: longer than a transaction of a few records takes on a busy
// machine, and too short to be noticed.
const turnLimit = 10 * time.Millisecond

func newTurns(parallel int, limit time.Duration) turns {
	return turns{free: make(chan struct{}, parallel), limit: limit}
}

// take waits for a turn. It returns nil when done is closed first, else how to give the turn back.
func (t turns) take(done <-chan struct{}) (giveBack func()) {
	select {
	case t.free <- struct{}{}:
	case <-done:
		return nil
	}
	once := sync.OnceFunc(func() { <-t.free })
	timer := time.AfterFunc(t.limit, once)
	return func() {
		timer.Stop()
		once()
	}
}
