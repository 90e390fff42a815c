package kafka

import (
	"bytes"
	"time"

	"github.com/IBM/sarama"
)

// leastReady is how many records may lie ready where a batch is smaller.
const leastReady = 16

// readAhead takes records from sarama while they may be held, until there are no more or the partition is let go. The
// semaphore counts bytes. Sarama's own channel counts records: it would hold hundreds of them, however large, while
// a handler waits for its database.
func (p *partition) readAhead() {
	defer close(p.records)
	for {
		select {
		case m, ok := <-p.claim.Messages():
			if !ok || p.held.Acquire(p.ctx, p.weight(m)) != nil {
				return
			}
			detach(m)
			select {
			case p.records <- m:
			case <-p.leaving:
				return
			}
		case <-p.leaving:
			return
		}
	}
}

// comingLimit is how long a batch waits for what is about to come. It comes within microseconds, unless what is left on
// the log is of no interest (control records) or takes another fetch.
const comingLimit = 5 * time.Millisecond

// isComing says whether sarama knows of more records, and there is room for them. It hands them over one by one:
// without a look at where the log ends, the records of one answer would be as many batches as the scheduler likes.
func (p *partition) isComing() bool {
	if p.next >= p.claim.HighWaterMarkOffset() || !p.held.TryAcquire(1) {
		return false
	}
	p.held.Release(1)
	return true
}

// weight is what a record takes of the partition's bytes. One that is larger than all of them takes them all: it comes
// by itself.
func (p *partition) weight(m *sarama.ConsumerMessage) int64 {
	return int64(min(readable(m).size(), p.member.cfg.maxBytes))
}

// detach copies the record's bytes out of the answer that it came in, which it would keep in memory whole, with the
// records of other partitions. What is nil stays nil.
func detach(m *sarama.ConsumerMessage) {
	all := make([]byte, 0, readable(m).size())
	keep := func(b []byte) []byte {
		if len(b) == 0 {
			return bytes.Clone(b)
		}
		all = append(all, b...)
		return all[len(all)-len(b) : len(all) : len(all)]
	}
	m.Key, m.Value = keep(m.Key), keep(m.Value)
	for _, h := range m.Headers {
		h.Key, h.Value = keep(h.Key), keep(h.Value)
	}
}
