package poison

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is that of the inbox which the guard belongs to.
type Config struct {
	Consumer    string
	Pool        *pgxpool.Pool
	Batch       int // records of a partition that may be under way
	MaxAttempts int // of one record that end a process, before it is given up
	// Insist repeats a statement until it works or ctx ends.
	Insist func(ctx context.Context, what string, do func(context.Context) error) error
	Log    *slog.Logger
}

// Guard knows the topic-partitions of one consumer. It is safe for concurrent use.
type Guard struct {
	cfg  Config
	mu   sync.Mutex
	left map[topicPartition]*Assignment // in good order; it may not be recorded yet
}

type topicPartition struct {
	topic     string
	partition int32
}

// New returns the guard of a consumer that has no partitions yet.
func New(cfg Config) *Guard { return &Guard{cfg: cfg, left: make(map[topicPartition]*Assignment)} }

// Assignment is a topic-partition while it is this process's. The owner of a partition has a row in the database; one
// that stops cleanly removes it. So a row that is found says that its owner ended in the middle of something, perhaps
// because of it. Attempts in a partition come one after another, so nothing in it is guarded.
type Assignment struct {
	guard *Guard
	topicPartition
	owner    string    // of this assignment alone: the process may have the partition again before its last row is removed
	unproven int       // records that may have ended the last owner, from the first that it had not processed
	suspects []suspect // ranges in which owners before have died, in their order
	end      int64     // of the log when this process began to read it; 0: not known
	fresh    bool      // the redeliveries are over: something came that had not come to its end before
}

// Inserting reports the row that was there before: a statement does not see what it writes itself.
const takePartition = `
insert into public.inbox_owner as o (consumer, topic, partition, owner, in_flight) values ($1, $2, $3, $4, $5)
on conflict (consumer, topic, partition) do update
set owner = excluded.owner, in_flight = greatest(o.in_flight, excluded.in_flight), since = clock_timestamp()
returning (select p.owner from public.inbox_owner p where p.consumer = $1 and p.topic = $2 and p.partition = $3),
    (select p.in_flight from public.inbox_owner p where p.consumer = $1 and p.topic = $2 and p.partition = $3)`

// Take notes, before a partition's first record, that it is this process's. logEnd is the offset behind the last record
// when this process began to read; 0 where that is not known.
func (g *Guard) Take(ctx context.Context, topic string, partition int32, logEnd int64) (*Assignment, error) {
	a := &Assignment{guard: g, topicPartition: topicPartition{topic, partition}, owner: rand.Text(), end: logEnd}
	g.mu.Lock()
	left := g.left[a.topicPartition]
	g.mu.Unlock()
	var before *string
	var inFlight *int
	err := g.cfg.Insist(ctx, "take partition", func(ctx context.Context) error {
		return g.cfg.Pool.QueryRow(ctx, takePartition, g.cfg.Consumer, topic, partition, a.owner, g.cfg.Batch).
			Scan(&before, &inFlight)
	})
	switch {
	case err != nil:
		return nil, err
	case before == nil:
	case left != nil && *before == left.owner: // it came back before the database has heard that it was left
		a.unproven, a.suspects = left.unproven, left.suspects
	default:
		if err := a.succeed(ctx, *inFlight); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// succeed takes over from an owner that did not leave the partition.
func (a *Assignment) succeed(ctx context.Context, inFlight int) error {
	a.unproven = inFlight
	err := a.guard.cfg.Insist(ctx, "read attempts", func(ctx context.Context) (err error) {
		a.suspects, err = a.readSuspects(ctx, a.guard.cfg.Pool)
		return err
	})
	if err != nil {
		return err
	}
	a.guard.cfg.Log.WarnContext(ctx, "partition was not left in good order: its first events are counted before they run",
		"topic", a.topic, "partition", a.partition, "in_flight", inFlight, "suspect_ranges", len(a.suspects))
	return nil
}

// key is the partition, as the first parameters of the statements.
func (a *Assignment) key() []any { return []any{a.guard.cfg.Consumer, a.topic, a.partition} }

// Leave says that the partition's records are no longer this process's and that none of them is under way, and returns
// how to record that. Until it is recorded the next owner counts its first records, as after a crash. It may be
// recorded late, also when the partition has come back meanwhile.
func (a *Assignment) Leave() (record func(context.Context) error) {
	a.guard.mu.Lock()
	defer a.guard.mu.Unlock()
	a.guard.left[a.topicPartition] = a
	return func(ctx context.Context) error { return a.guard.LeaveAll(ctx, a) }
}

// Abandon says that the partition's records are no longer this process's, but that some may still be under way. Its row
// stays: the next owner counts its first records, as after a crash.
func (a *Assignment) Abandon() {
	a.guard.mu.Lock()
	defer a.guard.mu.Unlock()
	delete(a.guard.left, a.topicPartition)
}

// What an owner before was suspected of and this one did not come to is left to the next.
const leavePartitions = `
with held as (
    select * from unnest($2::text[], $3::int[], $4::text[], $5::bool[], $6::int[])
        as h (topic, partition, owner, suspicious, unproven)
), clean as (
    delete from public.inbox_owner o using held h
    where o.consumer = $1 and o.topic = h.topic and o.partition = h.partition and o.owner = h.owner and not h.suspicious
)
update public.inbox_owner o set in_flight = h.unproven from held h
where o.consumer = $1 and o.topic = h.topic and o.partition = h.partition and o.owner = h.owner and h.suspicious`

// LeaveAll records that the partitions are left in good order.
func (g *Guard) LeaveAll(ctx context.Context, all ...*Assignment) error {
	topics, owners := make([]string, len(all)), make([]string, len(all))
	partitions, unproven, suspicious := make([]int32, len(all)), make([]int32, len(all)), make([]bool, len(all))
	for i, a := range all {
		topics[i], partitions[i], owners[i] = a.topic, a.partition, a.owner
		suspicious[i], unproven[i] = a.Suspicious(), int32(a.unproven)
	}
	_, err := g.cfg.Pool.Exec(ctx, leavePartitions, g.cfg.Consumer, topics, partitions, owners, suspicious, unproven)
	if err != nil {
		return fmt.Errorf("leave partitions: %w", err)
	}
	return nil
}
