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
func (w *worker) look() {
	careful := w.suspicion >= suspicions
	for taken := 0; w.ahead.isEmpty() && !isClosed(w.leaving); {
		f, err := w.reader.read(w.at, w.next)
		if err != nil {
			w.log.Debug("look at the log", "error", err)
			w.progress.turnedAway(err)
			return
		}
		w.progress.admitted()
		if w.next = f.from; f.damage != nil {
			if w.confirmed() {
				w.skip(f)
			}
			return
		}
		if f.next == f.from {
			if taken == 0 {
				w.progress.received()
			}
			return
		}
		if len(f.records) > 0 && !careful {
			w.progress.waiting(f.records[0].Offset)
			return
		}
		for _, m := range f.records {
			if !w.ahead.hold(m) {
				return
			}
			w.add(m)
			w.progress.received()
			taken++
		}
		w.next = f.next
	}
}

// confirmed reads the damaged batch again, each time over another connection.
func (w *worker) confirmed() bool {
	for range confirmations - 1 {
		if !pauseUntil(w.leaving, w.member.cfg.NackBackoff) {
			return false
		}
		if f, err := w.reader.read(w.at, w.next); err != nil || f.damage == nil {
			return false
		}
	}
	return true
}

// skip puts a gap where the damaged batch is, and leaves the partition out of what sarama asks for: what else is on
// that broker can be read again. Where the batch ends is in its header, which sarama does not show when it fails; so
// its offsets are asked for one by one until one is readable, or the end is reached.
func (w *worker) skip(f found) {
	gap := entry{
		ConsumerMessage: &sarama.ConsumerMessage{Topic: w.at.topic, Partition: w.at.partition, Offset: f.from},
		unreadable:      f.damage,
	}
	gap.keep(f, found{})
	next := max(f.next, f.from+1)
	for {
		further, err := w.reader.read(w.at, next)
		if err != nil || isClosed(w.leaving) {
			return // the next look begins anew
		}
		if further.damage == nil {
			break
		}
		gap.keep(further, f)
		f, next = further, max(further.next, next+1)
	}
	gap.last = next - 1
	w.log.Error("damaged batch on the log, handed over as one unreadable message",
		"offset", gap.Offset, "last_offset", gap.last, "error", gap.unreadable)
	w.pending = append(w.pending, gap)
	w.next, w.damaged = next, true
	w.member.pauseReading(w.at)
}
