package kafka

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/fault"
)

// work takes records and has them delivered, until the partition is to be let go or has to be read anew.
func (p *partition) work() {
	looks := time.NewTicker(p.member.cfg.LookEvery)
	defer looks.Stop()
	notes, stop := p.member.notes()
	defer stop()
	defer p.note()
	for p.receive(looks.C, notes) {
		giveBack, ok := p.gather()
		if !ok {
			return
		}
		batch := p.batch()
		fault.Here("kafka.taken")
		p.progress.begin()
		handled, err := p.member.cfg.deliver(p, batch)
		giveBack()
		handled = max(0, min(handled, len(batch)))
		p.acknowledge(handled)
		if handled == len(batch) {
			p.tries, err = 0, nil
		} else if err == nil {
			err = errIncomplete
		}
		p.progress.end(handled, err)
		if !p.noteSoon() {
			return
		}
		if p.damaged && len(p.pending) == 0 {
			return // what is behind the gap is read from the committed offset on, by a new session
		}
		if err != nil && !p.backOff(err) {
			return
		}
	}
}

// errIncomplete is the error of a handler that has none and leaves something undone.
var errIncomplete = errors.New("not all messages were handled")

// receive waits until something is pending; false when the partition is to be let go.
func (p *partition) receive(looks, notes <-chan time.Time) bool {
	for len(p.pending) == 0 {
		if !p.take() {
			return false
		}
		if len(p.pending) > 0 {
			break
		}
		select {
		case <-p.ahead.come:
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
	return true
}

// gather adds what else is there to what is pending and, unless that is a full batch, what comes until it is the
// partition's turn; not ok when the partition is to be let go. The turn is to be given back.
func (p *partition) gather() (giveBack func(), ok bool) {
	giveBack = func() {}
	if !p.fill() {
		return nil, false
	}
	if t := p.member.cfg.turns; t != nil && !p.isFull() {
		if giveBack = t.take(p.leaving); giveBack == nil {
			return nil, false
		}
		if !p.fill() {
			giveBack()
			return nil, false
		}
	}
	return giveBack, true
}

// fill adds what is there or about to come, up to a full batch; false when the partition is to be let go.
func (p *partition) fill() bool {
	var waited <-chan time.Time
	for !p.isFull() && !p.damaged {
		before := len(p.pending)
		if !p.take() {
			return false
		}
		if len(p.pending) > before {
			continue
		}
		if !p.isComing() {
			break
		}
		if waited == nil {
			waited = time.After(comingLimit)
		}
		select {
		case <-p.ahead.come:
			continue
		case <-waited:
		case <-p.leaving:
		}
		break
	}
	return !isClosed(p.leaving)
}

// take adds what lies ready to what is pending, up to a full batch; false when none does nor will.
func (p *partition) take() (more bool) {
	for before := len(p.pending); len(p.pending) == before; p.progress.received() {
		records, more := p.ahead.take(p.member.cfg.batch - before)
		if len(records) == 0 {
			return more
		}
		for _, m := range records {
			p.add(m)
		}
	}
	return true
}

// isFull says whether no more is to be taken before some of it is handled: it would only lie here.
func (p *partition) isFull() bool { return len(p.pending) >= p.member.cfg.batch }

// add appends a record that is held, unless it was already read past sarama.
func (p *partition) add(m *sarama.ConsumerMessage) {
	if m.Offset < p.next {
		p.ahead.release(p.ahead.weight(m))
		return
	}
	p.next, p.suspicion = m.Offset+1, 0
	p.pending = append(p.pending, readable(m))
}

// batch is as much of what is pending as one call may get.
func (p *partition) batch() []entry { return p.pending[:min(len(p.pending), p.member.cfg.batch)] }

// acknowledge marks the first n pending records as done and forgets them.
func (p *partition) acknowledge(n int) {
	if n == 0 {
		p.tries++
		return
	}
	p.tries = 1
	if p.done = p.pending[n-1].last + 1; p.member.cfg.positions == nil {
		p.stored = p.done
		p.mark(p.done)
	}
	weight := 0
	for _, r := range p.pending[:n] {
		if r.unreadable == nil {
			weight += p.ahead.weight(r.ConsumerMessage)
		}
	}
	p.ahead.release(weight)
	left := copy(p.pending, p.pending[n:])
	clear(p.pending[left:])
	p.pending = p.pending[:left]
}

// backOff waits before what is left is handed over again; false when the partition is to be let go.
func (p *partition) backOff(err error) bool {
	if isClosed(p.leaving) {
		return false // and the error, if there is one, is most often that
	}
	cfg := p.member.cfg
	wait := min(cfg.NackBackoff<<min(p.tries-1, 16), cfg.MaxNackBackoff)
	if p.tries == 1 {
		p.log.Warn("handle messages, trying again", "offset", p.pending[0].Offset, "error", err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.leaving:
		return false
	}
}
