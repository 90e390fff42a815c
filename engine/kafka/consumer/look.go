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
		f, err := w.reader.Read(w.at, w.next, reader.OneBatch)
		if err != nil {
			w.log.Debug("look at the log", "error", err)
			w.progress.TurnedAway(err)
			return
		}
		w.progress.Admitted()
		if w.next = f.From; f.Damage != nil {
			w.skip()
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

// confirmed reads what is taken for damaged again, each time over another connection.
func (w *worker) confirmed(taped *reader.Reader) (f reader.Found, is bool) {
	for range confirmations - 1 {
		var err error
		if !pauseUntil(w.leaving, w.member.cfg.NackBackoff) {
			return f, false
		}
		if f, err = taped.Read(w.at, w.next, reader.OneBatch); err != nil || f.Damage == nil {
			return f, false
		}
	}
	return f, true
}

// skip puts a gap where a damaged batch is, and leaves the partition out of what sarama asks for: what else is on that
// broker can be read again. Where the batch ends is in its header, which sarama does not show when it fails; so its
// offsets are asked for one by one until one is readable, or the end is reached.
func (w *worker) skip() {
	taped := reader.Taped(w.member.cfg.Brokers, w.member.cfg.Client())
	defer func() { _ = taped.Close() }()
	f, is := w.confirmed(taped)
	if !is {
		return
	}
	gap := entry{
		ConsumerMessage: &sarama.ConsumerMessage{Topic: w.at.Topic, Partition: w.at.Partition, Offset: f.From},
		unreadable:      f.Damage,
	}
	gap.keep(f, reader.Found{})
	next := max(f.Next, f.From+1)
	for {
		further, err := taped.Read(w.at, next, reader.OneBatch)
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
