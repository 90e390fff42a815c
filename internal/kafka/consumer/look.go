package consumer

import (
	"bytes"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka/internal/reader"
)

const (
	// suspicions is after how many errors of sarama's a partition reads for itself.
	suspicions = 3
	// confirmations is how often a batch must prove unreadable: a bit may also flip on the way.
	confirmations = 3
)

// gap is what there is of records that cannot be read.
type gap struct {
	why  error
	raw  []byte // the beginning of their batches as they lie on the log
	size int    // bytes of these batches
}

// look asks the broker what lies at the next offset, since nothing has come for a while or sarama has reported an
// error. Nothing there: all is well. A damaged batch: it becomes a gap, which is handed over like a record. Readable
// records: they may come in a moment, so they are only noted, see progress; but when sarama has failed again and again
// meanwhile, they are taken past it.
func (p *partition) look() {
	var own detacher
	for taken := 0; p.leaving.Err() == nil; {
		if taken == 0 && p.queue.held() > 0 {
			return
		}
		f, err := p.reader.Read(p.at, p.queue.following(), reader.OneBatch)
		p.progress.Refused(err)
		switch {
		case err != nil:
			p.log.Debug("look at the log", "error", err)
			return
		case f.Damage != nil:
			if taken == 0 {
				p.skip(f.From)
			}
			return
		case f.Next == f.From:
			if taken == 0 {
				p.progress.Waiting(-1)
			}
			return
		case len(f.Records) > 0 && p.suspicion < suspicions:
			p.progress.Waiting(f.Records[0].Offset)
			return
		}
		for _, m := range f.Records {
			if _, full := p.queue.put(own.detach(m)); full {
				return
			}
			taken++
		}
		p.queue.pass(f.Next)
	}
}

// skip puts a gap where a damaged batch is, and leaves the partition out of what sarama asks for, as long as its
// connection lasts: what else is on that broker can be read again. What is taken for damaged is read again before, over
// another connection. Where the batch ends is in its header, which sarama does not show when it fails; so its offsets
// are asked for one by one until one is readable, or the end is reached.
func (p *partition) skip(from int64) {
	taped := reader.Taped(p.member.cfg.Brokers, p.member.cfg.Client())
	defer func() { _ = taped.Close() }()
	var f, before reader.Found
	var err error
	for range confirmations - 1 {
		if failure.Sleep(p.leaving, p.member.cfg.NackBackoff) != nil {
			return
		}
		if f, err = taped.Read(p.at, from, reader.OneBatch); err != nil || f.Damage == nil {
			return
		}
	}
	g, next := &gap{why: f.Damage}, from
	for f.Damage != nil {
		if !bytes.Equal(f.Raw, before.Raw) { // else it is the batch before, found again at its next offset
			g.raw = append(g.raw, f.Raw[:min(len(f.Raw), reader.MaxDamage-len(g.raw))]...)
			g.size += f.Size
		}
		before, next = f, max(f.Next, next+1)
		if f, err = taped.Read(p.at, next, reader.OneBatch); err != nil || p.leaving.Err() != nil {
			return // the next look begins anew
		}
	}
	at := &sarama.ConsumerMessage{Topic: p.at.Topic, Partition: p.at.Partition, Offset: from}
	if added, _ := p.queue.put(entry{ConsumerMessage: at, last: next - 1, gap: g}); !added {
		return // another broker that leads now has it undamaged: behind that record a gap would take the partition back
	}
	p.log.Error("damaged batch on the log, handed over as one unreadable message",
		"offset", from, "last_offset", next-1, "error", g.why)
	p.damaged = true
	p.member.mu.Lock()
	defer p.member.mu.Unlock()
	p.member.group.Pause(map[string][]int32{p.at.Topic: {p.at.Partition}})
}
