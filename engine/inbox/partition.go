package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/inbox/poison"
)

// partitions are the topic-partitions that this inbox has been handed records of and has not left since.
type partitions struct {
	guard *poison.Guard
	mu    sync.Mutex
	all   map[topicPartition]*partition
}

type topicPartition struct {
	topic     string
	partition int32
}

// partition is what the inbox knows of one of them. Its messages come one after another, so nothing in it is guarded;
// nil stands for messages that no broker delivered.
type partition struct {
	*poison.Assignment
	upTo     int64     // the last offset of the attempt under way
	repeats  int       // transactions in a row that found nothing new
	waitedAt time.Time // when the last wait for a missing predecessor was in vain
}

// of notes, with a partition's first message, that its events are now this process's. It costs nothing after that.
func (ps *partitions) of(ctx context.Context, origin cloudevent.Origin) (*partition, error) {
	at := topicPartition{origin.Topic, origin.Partition}
	ps.mu.Lock()
	p := ps.all[at]
	ps.mu.Unlock()
	if p != nil {
		return p, nil
	}
	taken, err := ps.guard.Take(ctx, at.topic, at.partition, cloudevent.LogEndFrom(ctx))
	if err != nil {
		return nil, err
	}
	p = &partition{Assignment: taken}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.all[at] = p
	return p, nil
}

// Leave says that a partition's events are no longer this process's and that none of them is under way, and returns how
// to record that. Until it is recorded the next owner counts its first events, as after a crash. It may be recorded
// late, also when the partition has come back meanwhile.
func (ps *partitions) Leave(topic string, partition int32) (record func(context.Context) error) {
	if p := ps.drop(topic, partition); p != nil {
		return p.Leave()
	}
	return func(context.Context) error { return nil }
}

// Abandon says that a partition's events are no longer this process's, but that some may still be under way. The next
// owner counts its first events, as after a crash.
func (ps *partitions) Abandon(topic string, partition int32) {
	if p := ps.drop(topic, partition); p != nil {
		p.Abandon()
	}
}

func (ps *partitions) drop(topic string, number int32) *partition {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	at := topicPartition{topic, number}
	p := ps.all[at]
	delete(ps.all, at)
	return p
}

// Close leaves every partition that is neither left nor abandoned. Call it when the last delivery has ended.
func (ps *partitions) Close(ctx context.Context) error {
	ps.mu.Lock()
	var held []*poison.Assignment
	for _, p := range ps.all {
		held = append(held, p.Assignment)
	}
	clear(ps.all)
	ps.mu.Unlock()
	return ps.guard.LeaveAll(ctx, held...)
}

// noteWait notes a wait in vain.
func (p *partition) noteWait() {
	if p != nil {
		p.waitedAt = time.Now()
	}
}

// hasWaited says that the partition has waited lately, and that its next gap parks at once: if thousands of keys have
// one, the partition loses a tenth of its time and not a wait for each of them.
func (p *partition) hasWaited(wait time.Duration) bool {
	return p != nil && !p.waitedAt.IsZero() && time.Since(p.waitedAt) < 9*wait
}

// noteRepeats counts the transactions in a row that brought nothing new.
func (p *partition) noteRepeats(items []*item) {
	if p == nil {
		return
	}
	for _, it := range items {
		if it.outcome != Duplicate {
			p.repeats = 0
			return
		}
	}
	p.repeats++
}

// settle says that the items have come to their end.
func (p *partition) settle(items ...*item) {
	if p == nil || !p.Suspicious() {
		return
	}
	fresh := 0 // that had not come to their end before: what had is processed, or has its dead letter
	for _, it := range items {
		if it.outcome != Duplicate && it.outcome != Failed && !it.ignored && !it.filedBefore {
			fresh++
		}
	}
	p.Settle(items[len(items)-1].last(), fresh)
}

// forgetAttempts removes, in the transaction of their effects, the counts of events that come to their end.
func (p *partition) forgetAttempts(ctx context.Context, tx pgx.Tx, upTo int64) error {
	if p == nil {
		return nil
	}
	sql, args := p.Forget(upTo)
	if sql == "" {
		return nil
	}
	return Queue(ctx, tx, sql, args...)
}

// last is the last offset that the item stands for.
func (it *item) last() int64 { return max(it.origin.Offset, it.origin.LastOffset) }
