package kafka

import "github.com/IBM/sarama"

const (
	// suspicions is after how many errors of sarama's a partition reads for itself.
	suspicions = 3
	// confirmations is how often a batch must prove unreadable: a bit may also flip on the way.
	confirmations = 3
)

// look asks the broker what lies at the next offset, since nothing has come for a while or sarama has reported an
// error. Nothing there: all is well. A damaged batch: it becomes a gap, which is handed over like a record. Readable
// records: they may come in a moment, so they are only noted, see progress; but when sarama has failed again and again
// meanwhile, they are taken past it.
func (p *partition) look() {
	careful := p.suspicion >= suspicions
	for taken := 0; p.ahead.isEmpty() && !isClosed(p.leaving); {
		f, err := p.reader.read(p.at, p.next)
		if err != nil {
			p.log.Debug("look at the log", "error", err)
			p.progress.turnedAway(err)
			return
		}
		p.progress.admitted()
		if p.next = f.from; f.damage != nil {
			if p.confirmed() {
				p.skip(f)
			}
			return
		}
		if f.next == f.from {
			if taken == 0 {
				p.progress.received()
			}
			return
		}
		if len(f.records) > 0 && !careful {
			p.progress.waiting(f.records[0].Offset)
			return
		}
		for _, m := range f.records {
			if !p.ahead.hold(m) {
				return
			}
			p.add(m)
			p.progress.received()
			taken++
		}
		p.next = f.next
	}
}

// confirmed reads the damaged batch again, each time over another connection.
func (p *partition) confirmed() bool {
	for range confirmations - 1 {
		if !pauseUntil(p.leaving, p.member.cfg.NackBackoff) {
			return false
		}
		if f, err := p.reader.read(p.at, p.next); err != nil || f.damage == nil {
			return false
		}
	}
	return true
}

// skip puts a gap where the damaged batch is, and leaves the partition out of what sarama asks for: what else is on
// that broker can be read again. Where the batch ends is in its header, which sarama does not show when it fails; so
// its offsets are asked for one by one until one is readable, or the end is reached.
func (p *partition) skip(f found) {
	gap := entry{
		ConsumerMessage: &sarama.ConsumerMessage{Topic: p.at.topic, Partition: p.at.partition, Offset: f.from},
		unreadable:      f.damage,
	}
	gap.keep(f, found{})
	next := max(f.next, f.from+1)
	for {
		further, err := p.reader.read(p.at, next)
		if err != nil || isClosed(p.leaving) {
			return // the next look begins anew
		}
		if further.damage == nil {
			break
		}
		gap.keep(further, f)
		f, next = further, max(further.next, next+1)
	}
	gap.last = next - 1
	p.log.Error("damaged batch on the log, handed over as one unreadable message",
		"offset", gap.Offset, "last_offset", gap.last, "error", gap.unreadable)
	p.pending = append(p.pending, gap)
	p.next, p.damaged = next, true
	p.member.pauseReading(p.at)
}
