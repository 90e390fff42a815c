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
	left  map[lane]*claim // in good order; it may not be recorded yet
}

// claim is one partition. Its messages come one after another, so nothing in it is guarded.
type claim struct {
	owner    string    // of this claim alone: the same process may have the partition again before its last row is removed
	unproven int       // events that may have ended the last owner, from the first that it had not processed
	suspects []suspect // ranges in which owners before have died, in their order
	end      int64     // of the log when this process began to read it; 0: not known
	fresh    bool      // the redeliveries are over: something came that had not come to its end before
	upTo     int64     // the last offset of the attempt under way
	repeats  int       // transactions in a row that found nothing new

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
returning (select p.owner from public.inbox_owner p where p.consumer = $1 and p.topic = $2 and p.partition = $3),
    (select p.in_flight from public.inbox_owner p where p.consumer = $1 and p.topic = $2 and p.partition = $3)`

// take notes, with a partition's first message, that its events are now this process's. It costs nothing after that.
func (in *Inbox) take(msg *message.Message) (*claim, error) {
	origin, known := in.originOf(msg)
	if !known {
		return nil, nil
	}
	at := lane{origin.Topic, origin.Partition}
	in.claims.mu.Lock()
	c, left := in.claims.taken[at], in.claims.left[at]
	in.claims.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c = &claim{owner: rand.Text(), end: cloudevent.LogEndFrom(msg.Context())}
	var before *string
	var inFlight *int
	err := in.insist(msg.Context(), "take partition", func(ctx context.Context) error {
		return in.cfg.Pool.QueryRow(ctx, takeLane, in.cfg.Consumer, at.topic, at.partition, c.owner,
			in.cfg.Batch).Scan(&before, &inFlight)
	})
	switch {
	case err != nil:
		return nil, err
	case before == nil:
	case left != nil && *before == left.owner: // it came back before the database has heard that it was left
		c.unproven, c.suspects = left.unproven, left.suspects
	default:
		if err := in.succeed(msg.Context(), c, at, *inFlight); err != nil {
			return nil, err
		}
	}
	in.claims.mu.Lock()
	defer in.claims.mu.Unlock()
	in.claims.taken[at] = c
	return c, nil
}

// succeed takes over from an owner that did not leave the partition.
func (in *Inbox) succeed(ctx context.Context, c *claim, at lane, inFlight int) error {
	c.unproven = inFlight
	err := in.insist(ctx, "read attempts", func(ctx context.Context) (err error) {
		c.suspects, err = readSuspects(ctx, in.cfg.Pool, []any{in.cfg.Consumer, at.topic, at.partition}, c.owner)
		return err
	})
	if err != nil {
		return err
	}
	in.log.WarnContext(ctx, "partition was not left in good order: its first events are counted before they run",
		"topic", at.topic, "partition", at.partition, "in_flight", inFlight, "suspect_ranges", len(c.suspects))
	return nil
}

// What an owner before was suspected of and this one did not come to is left to the next.
const leaveLane = `
with clean as (
    delete from public.inbox_owner where consumer = $1 and topic = $2 and partition = $3 and owner = $4 and not $5)
update public.inbox_owner set in_flight = $6
where consumer = $1 and topic = $2 and partition = $3 and owner = $4 and $5`

// Leave says that a partition's events are no longer this process's and that none of them is under way, and returns how
// to record that. Until it is recorded the next owner counts its first events, as after a crash. It may be recorded
// late, also when the partition has come back meanwhile: it ends the claim that there was at the call.
func (in *Inbox) Leave(topic string, partition int32) (record func(context.Context) error) {
	c := in.claims.drop(lane{topic, partition}, true)
	return func(ctx context.Context) error {
		if c == nil {
			return nil
		}
		_, err := in.cfg.Pool.Exec(ctx, leaveLane,
			in.cfg.Consumer, topic, partition, c.owner, c.suspicious(), c.unproven)
		if err != nil {
			return fmt.Errorf("leave partition: %w", err)
		}
		return nil
	}
}

// Abandon says that a partition's events are no longer this process's, but that some may still be under way. Its row
// stays: the next owner counts its first events, as after a crash.
func (in *Inbox) Abandon(topic string, partition int32) {
	in.claims.drop(lane{topic, partition}, false)
}

// drop ends the claim on a partition and returns it; nil if there is none.
func (c *claims) drop(at lane, inGoodOrder bool) *claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := c.taken[at]
	delete(c.taken, at)
	delete(c.left, at)
	if inGoodOrder && dropped != nil {
		c.left[at] = dropped
	}
	return dropped
}

const leaveAll = `
with held as (
    select * from unnest($2::text[], $3::int[], $4::text[], $5::bool[], $6::int[])
        as h (topic, partition, owner, suspicious, unproven)
), clean as (
    delete from public.inbox_owner o using held h
    where o.consumer = $1 and o.topic = h.topic and o.partition = h.partition and o.owner = h.owner and not h.suspicious
)
update public.inbox_owner o set in_flight = h.unproven from held h
where o.consumer = $1 and o.topic = h.topic and o.partition = h.partition and o.owner = h.owner and h.suspicious`

// Close is [Inbox.Leave] for every partition that is neither left nor abandoned. Call it when the last delivery has
// ended.
func (in *Inbox) Close(ctx context.Context) error {
	in.claims.mu.Lock()
	var topics, owners []string
	var partitions, unproven []int32
	var suspicious []bool
	for at, c := range in.claims.taken {
		topics, partitions, owners = append(topics, at.topic), append(partitions, at.partition), append(owners, c.owner)
		suspicious, unproven = append(suspicious, c.suspicious()), append(unproven, int32(c.unproven))
	}
	clear(in.claims.taken)
	in.claims.mu.Unlock()
	_, err := in.cfg.Pool.Exec(ctx, leaveAll, in.cfg.Consumer, topics, partitions, owners, suspicious, unproven)
	if err != nil {
		return fmt.Errorf("leave partitions: %w", err)
	}
	return nil
}
