package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// partition is a topic-partition of this process; the zero value is that of messages without an origin.
//
// A record whose handler ends the process would end each next process, too. So after a death attempts are stored before
// they begin, in transactions of their own:
//
//  1. A process dies. Its row in inbox_owner stays.
//  2. The next owner finds that row, stores the offsets of its first batch in inbox_attempt, runs the batch, and dies.
//  3. The next owner finds both rows. It runs the records of that batch one by one, and counts each before it runs it.
//     No other attempt runs in the process.
//  4. A record that was counted more than MaxAttempts times is given up.
type partition struct {
	topicPartition
	in           *Inbox
	owner        string        // a name for this assignment
	isSuspect    bool          // attempts count until a new record is committed
	oneByOneTo   int64         // records up to this offset run one by one
	deaths       map[int64]int // of earlier owners, by the first offset of the attempt
	countedFirst *int64        // first offset of the counted attempt
}

type topicPartition struct {
	topic  string
	number int32
}

// partitionOf takes a partition with its first record.
func (in *Inbox) partitionOf(ctx context.Context, o event.Origin) (*partition, error) {
	if o.Topic == "" {
		return &partition{}, nil
	}
	at := topicPartition{o.Topic, o.Partition}
	in.mu.Lock()
	p := in.owned[at]
	in.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p = &partition{topicPartition: at, in: in, owner: rand.Text()}
	backoff := in.cfg.backoff()
	for err := p.take(ctx); err != nil; err = p.take(ctx) {
		pause := backoff.Next()
		in.log.WarnContext(ctx, "partition not taken", "topic", p.topic, "partition", p.number, "retry_in", pause,
			"error", err)
		if err := in.cfg.Host.Wait(ctx, err, pause); err != nil {
			return nil, err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if ctx.Err() == nil {
		in.owned[at] = p
	}
	return p, nil
}

const takePartition = `
with before as (select owner from public.inbox_owner where (consumer, topic, partition) = ($1, $2, $3)),
taken as (insert into public.inbox_owner as o (consumer, topic, partition, owner) values ($1, $2, $3, $4)
    on conflict (consumer, topic, partition) do update set owner = excluded.owner, since = clock_timestamp())
select exists (select from before), coalesce(max(last_offset), -1),
    coalesce(jsonb_object_agg(first_offset, attempts), '{}')
from public.inbox_attempt where (consumer, topic, partition) = ($1, $2, $3) and exists (select from before)`

func (p *partition) take(ctx context.Context) error {
	cfg := p.in.cfg
	limited, cancel := context.WithTimeout(ctx, cfg.HandlerTimeout)
	defer cancel()
	err := cfg.Pool.QueryRow(limited, takePartition, cfg.Consumer, p.topic, p.number, p.owner).
		Scan(&p.isSuspect, &p.oneByOneTo, &p.deaths)
	if err != nil {
		return fmt.Errorf("take partition: %w", err)
	}
	if p.isSuspect {
		p.in.log.WarnContext(ctx, "the partition's last owner did not leave it: attempts are counted", "topic", p.topic,
			"partition", p.number, "one_by_one_to", p.oneByOneTo)
	}
	return nil
}

func (p *partition) runsOneByOne(it *item) bool {
	return p.isSuspect && it.origin.Offset <= p.oneByOneTo
}

// alone is locked by a record that runs one by one, and read-locked by all other attempts: a death has one suspect.
var alone sync.RWMutex

func (p *partition) lockProcess(first *item) (unlock func()) {
	if p.runsOneByOne(first) {
		alone.Lock()
		return alone.Unlock
	}
	alone.RLock()
	return alone.RUnlock
}

var errProcessDied = &codedError{
	CodeProcessDied, Permanent(errors.New("the process ended each time it handled the event")),
}

const insertAttempt = `
insert into public.inbox_attempt (consumer, topic, partition, first_offset, last_offset, attempts)
values ($1, $2, $3, $4, $5, $6)
on conflict (consumer, topic, partition, first_offset) do update
set attempts = excluded.attempts, last_offset = excluded.last_offset, last_at = clock_timestamp()`

// An attempt that fails in this process is no death. A statement that is sent again counts no second time.
func (p *partition) countAttempt(ctx context.Context, items []*item) error {
	if !p.isSuspect || p.countedFirst != nil {
		return nil
	}
	cfg, first, last := p.in.cfg, items[0].origin.Offset, items[len(items)-1].origin.Offset
	attempts := p.deaths[first]
	if len(items) == 1 {
		attempts++
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.HandlerTimeout)
	defer cancel()
	_, err := cfg.Pool.Exec(ctx, insertAttempt, cfg.Consumer, p.topic, p.number, first, last, attempts)
	if err != nil {
		return failure.AsTransient(fmt.Errorf("count attempt: %w", err))
	}
	p.countedFirst = &first
	if attempts > cfg.MaxAttempts {
		items[0].givenUpFor, items[0].attempts = errProcessDied, attempts-1
	}
	return nil
}

const deleteAttempts = `
delete from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 and first_offset <= $4`

// After a commit behind the suspected records, the partition is not suspected any more.
func (p *partition) clearAttempts(ctx context.Context, items []*item) {
	if !p.isSuspect {
		return
	}
	p.countedFirst = nil
	last := items[len(items)-1].origin.Offset
	for _, it := range items {
		if (it.outcome == Applied || it.stored != nil) && last >= p.oneByOneTo {
			p.isSuspect = false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.in.cfg.HandlerTimeout)
	defer cancel()
	if _, err := p.in.cfg.Pool.Exec(ctx, deleteAttempts, p.in.cfg.Consumer, p.topic, p.number, last); err != nil {
		p.in.log.WarnContext(ctx, "count of an attempt not removed", "error", err)
	}
}

// Leave ends the ownership of a partition whose last call has ended. Until the returned function has recorded that,
// the next owner counts its first attempts.
func (in *Inbox) Leave(topic string, number int32) (record func(context.Context) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	at := topicPartition{topic, number}
	p := in.owned[at]
	delete(in.owned, at)
	return func(ctx context.Context) error { return p.recordLeave(ctx) }
}

// Close leaves every partition. Call it after the last delivery.
func (in *Inbox) Close(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var errs []error
	for _, p := range in.owned {
		errs = append(errs, p.recordLeave(ctx))
	}
	clear(in.owned)
	return errors.Join(errs...)
}

const uncountAttempt = `
update public.inbox_attempt set attempts = greatest(attempts - 1, 0)
where consumer = $1 and topic = $2 and partition = $3 and first_offset = $4`

const deleteOwner = `
delete from public.inbox_owner where consumer = $1 and topic = $2 and partition = $3 and owner = $4`

// A suspected partition keeps its row: the next owner counts the records that this one did not reach.
func (p *partition) recordLeave(ctx context.Context) (err error) {
	switch {
	case p == nil:
	case !p.isSuspect:
		_, err = p.in.cfg.Pool.Exec(ctx, deleteOwner, p.in.cfg.Consumer, p.topic, p.number, p.owner)
	case p.countedFirst != nil:
		_, err = p.in.cfg.Pool.Exec(ctx, uncountAttempt, p.in.cfg.Consumer, p.topic, p.number, *p.countedFirst)
	}
	if err != nil {
		return fmt.Errorf("leave partition: %w", err)
	}
	return nil
}
