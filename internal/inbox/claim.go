package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// lane is a partition of a topic.
type lane struct {
	topic     string
	partition int32
}

// claims are the partitions that this inbox has taken. Who takes one leaves a row; who stops cleanly removes it. So a
// row that is found there says that its owner ended in the middle of something, perhaps because of it.
type claims struct {
	mu    sync.Mutex
	taken map[lane]*claim
}

// claim is one partition. Its messages come one after another, so nothing in it is guarded.
type claim struct {
	owner    string // of this claim alone: the same process may have the partition again before its last row is removed
	suspects int    // events that may have ended the last owner and have not yet proved harmless
	repeats  int    // transactions in a row that found nothing new

	waitedAt time.Time // when the last wait for a missing predecessor was in vain
}

// waited notes a wait in vain.
func (c *claim) waited() {
	if c != nil {
		c.waitedAt = time.Now()
	}
}

// hasWaited says that the partition has waited lately, and that its next gap parks at once: if thousands of keys have
// one, the partition loses a tenth of its time and not a wait for each of them.
func (c *claim) hasWaited(wait time.Duration) bool {
	return c != nil && !c.waitedAt.IsZero() && time.Since(c.waitedAt) < 9*wait
}

// Inserting reports the row that was there before: a statement does not see what it writes itself.
const takeLane = `
insert into public.inbox_owner as o (consumer, topic, partition, owner, in_flight) values ($1, $2, $3, $4, $5)
on conflict (consumer, topic, partition) do update
set owner = excluded.owner, in_flight = greatest(o.in_flight, excluded.in_flight), since = clock_timestamp()
returning coalesce((select p.in_flight from public.inbox_owner p
    where p.consumer = $1 and p.topic = $2 and p.partition = $3), 0)`

// take notes, with a partition's first message, that its events are now this process's. It costs nothing after that.
func (in *Inbox) take(msg *message.Message) (*claim, error) {
	origin, known := cloudevent.OriginFrom(msg.Context())
	if !known {
		return nil, nil
	}
	at := lane{origin.Topic, origin.Partition}
	in.claims.mu.Lock()
	c := in.claims.taken[at]
	in.claims.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c = &claim{owner: rand.Text()}
	err := in.insist(msg.Context(), "take partition", func(ctx context.Context) error {
		return in.cfg.Pool.QueryRow(ctx, takeLane, in.cfg.Consumer, at.topic, at.partition, c.owner,
			in.cfg.Batch).Scan(&c.suspects)
	})
	if err != nil {
		return nil, err
	}
	if c.suspects > 0 {
		in.log.WarnContext(msg.Context(), "the last owner of the partition did not stop cleanly: its events run one by one",
			"topic", at.topic, "partition", at.partition, "suspects", c.suspects)
	}
	in.claims.mu.Lock()
	defer in.claims.mu.Unlock()
	in.claims.taken[at] = c
	return c, nil
}

const leaveLane = `
delete from public.inbox_owner where consumer = $1 and topic = $2 and partition = $3 and owner = $4`

// Leave says that a partition's events are no longer this process's and that none of them is under way, and returns how
// to record that. Until it is recorded the next owner runs its first events one by one, as after a crash. It may be
// recorded late, also when the partition has come back meanwhile: it ends the claim that there was at the call.
func (in *Inbox) Leave(topic string, partition int32) (record func(context.Context) error) {
	c := in.claims.drop(lane{topic, partition})
	return func(ctx context.Context) error {
		if c == nil {
			return nil
		}
		if _, err := in.cfg.Pool.Exec(ctx, leaveLane, in.cfg.Consumer, topic, partition, c.owner); err != nil {
			return fmt.Errorf("leave partition: %w", err)
		}
		return nil
	}
}

// Abandon says that a partition's events are no longer this process's, but that some may still be under way. Its row
// stays: whoever takes the partition next runs its first events one by one, as after a crash.
func (in *Inbox) Abandon(topic string, partition int32) { in.claims.drop(lane{topic, partition}) }

// drop forgets the claim on a partition and returns it; nil if there is none.
func (c *claims) drop(at lane) *claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := c.taken[at]
	delete(c.taken, at)
	return dropped
}

const leaveAll = `
delete from public.inbox_owner
where consumer = $1 and (topic, partition, owner) in (select * from unnest($2::text[], $3::int[], $4::text[]))`

// Close is [Inbox.Leave] for every partition that is neither left nor abandoned. Call it when the last delivery has
// ended.
func (in *Inbox) Close(ctx context.Context) error {
	in.claims.mu.Lock()
	var topics, owners []string
	var partitions []int32
	for at, c := range in.claims.taken {
		topics, partitions, owners = append(topics, at.topic), append(partitions, at.partition), append(owners, c.owner)
	}
	clear(in.claims.taken)
	in.claims.mu.Unlock()
	if _, err := in.cfg.Pool.Exec(ctx, leaveAll, in.cfg.Consumer, topics, partitions, owners); err != nil {
		return fmt.Errorf("leave partitions: %w", err)
	}
	return nil
}
