package consumer

import (
	"github.com/IBM/sarama"

	"example.com/twinbox/engine/kafka/internal/reader"
)

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
		f, err := w.reader.Read(w.at, w.next)
		if err != nil {
			w.log.Debug("look at the log", "error", err)
			w.progress.TurnedAway(err)
			return
		}
		w.progress.Admitted()
		if w.next = f.From; f.Damage != nil {
			if w.confirmed() {
				w.skip(f)
			}
			return
		}
		if f.Next == f.From {
			if taken == 0 {
				w.progress.Received()
			}
			return
		}
		if len(f.Records) > 0 && !careful {
			w.progress.Waiting(f.Records[0].Offset)
			return
		}
		for _, m := range f.Records {
			r, ok := w.ahead.hold(m)
			if !ok {
				return
			}
			w.add(r)
			w.progress.Received()
			taken++
		}
		w.next = f.Next
	}
}

// confirmed reads the damaged batch again, each time over another connection.
func (w *worker) confirmed() bool {
	for range confirmations - 1 {
		if !pauseUntil(w.leaving, w.member.cfg.NackBackoff) {
			return false
		}
		if f, err := w.reader.Read(w.at, w.next); err != nil || f.Damage == nil {
			return false
		}
	}
	return true
}

// skip puts a gap where the damaged batch is, and leaves the partition out of what sarama asks for: what else is on
// that broker can be read again. Where the batch ends is in its header, which sarama does not show when it fails; so
// its offsets are asked for one by one until one is readable, or the end is reached.
func (w *worker) skip(f reader.Found) {
	gap := entry{
		ConsumerMessage: &sarama.ConsumerMessage{Topic: w.at.Topic, Partition: w.at.Partition, Offset: f.From},
		unreadable:      f.Damage,
	}
	gap.keep(f, reader.Found{})
	next := max(f.Next, f.From+1)
	for {
		further, err := w.reader.Read(w.at, next)
		if err != nil || isClosed(w.leaving) {
			return // the next look begins anew
		}
		if further.Damage == nil {
			break
		}
		gap.keep(further, f)
		f, next = further, max(further.Next, next+1)
	}
	gap.last = next - 1
	w.log.Error("damaged batch on the log, handed over as one unreadable message",
		"offset", gap.Offset, "last_offset", gap.last, "error", gap.unreadable)
	w.pending = append(w.pending, gap)
	w.next, w.damaged = next, true
	w.member.pauseReading(w.at)
}
