package consumer

import (
	"bytes"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/kafka/internal/reader"
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

// keep adds a damaged batch to the gap, unless it is the one before, found again at its next offset.
func (g *gap) keep(f, before reader.Found) {
	if bytes.Equal(f.Raw, before.Raw) {
		return
	}
	g.raw = append(g.raw, f.Raw[:min(len(f.Raw), reader.MaxDamage-len(g.raw))]...)
	g.size += f.Size
}

// look asks the broker what lies at the next offset, since nothing has come for a while or sarama has reported an
// error. Nothing there: all is well. A damaged batch: it becomes a gap, which is handed over like a record. Readable
// records: they may come in a moment, so they are only noted, see progress; but when sarama has failed again and again
// meanwhile, they are taken past it.
func (p *partition) look() {
	var own detacher
	for taken := 0; p.leaving.Err() == nil; {
		if n, _ := p.queue.held(); n > 0 && taken == 0 {
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
				p.progress.Received()
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
			p.progress.Received()
			taken++
		}
		p.queue.pass(f.Next)
	}
}

// confirmed reads what is taken for damaged again, each time over another connection.
func (p *partition) confirmed(taped *reader.Reader, offset int64) (f reader.Found, is bool) {
	for range confirmations - 1 {
		var err error
		if failure.Sleep(p.leaving, p.member.cfg.NackBackoff) != nil {
			return f, false
		}
		if f, err = taped.Read(p.at, offset, reader.OneBatch); err != nil || f.Damage == nil {
			return f, false
		}
	}
	return f, true
}

// skip puts a gap where a damaged batch is, and leaves the partition out of what sarama asks for, as long as its
// connection lasts: what else is on that broker can be read again. Where the batch ends is in its header, which sarama
// does not show when it fails; so its offsets are asked for one by one until one is readable, or the end is reached.
func (p *partition) skip(from int64) {
	taped := reader.Taped(p.member.cfg.Brokers, p.member.cfg.Client())
	defer func() { _ = taped.Close() }()
	f, is := p.confirmed(taped, from)
	if !is {
		return
	}
	g := &gap{why: f.Damage}
	g.keep(f, reader.Found{})
	next := max(f.Next, from+1)
	for {
		further, err := taped.Read(p.at, next, reader.OneBatch)
		if err != nil || p.leaving.Err() != nil {
			return // the next look begins anew
		}
		if further.Damage == nil {
			break
		}
		g.keep(further, f)
		f, next = further, max(further.Next, next+1)
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
