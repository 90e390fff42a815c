package poison

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/event/cloudevent"
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
	held map[topicPartition]*Assignment // that records came of, and that were not left since
	left map[topicPartition]*Assignment // in good order; it may not be recorded yet
}

type topicPartition struct {
	topic     string
	partition int32
}

// New returns the guard of a consumer that has no partitions yet.
func New(cfg Config) *Guard {
	return &Guard{cfg: cfg, held: make(map[topicPartition]*Assignment), left: make(map[topicPartition]*Assignment)}
}

// Assignment is a topic-partition while it is this process's. The owner of a partition has a row in the database; one
// that stops cleanly removes it. So a row that is found says that its owner ended in the middle of something, perhaps
// because of it. Attempts in a partition come one after another, so nothing in it is guarded.
//
// The zero value stands for that of messages that no broker delivered: nothing is suspected of them, and their attempts
// wait for no others.
type Assignment struct {
	// Repeats and WaitedAt are the inbox's own notes: the transactions in a row that found nothing new, and when the last
	// wait for a missing predecessor was in vain.
	Repeats  int
	WaitedAt time.Time

	guard *Guard
	topicPartition
	owner    string    // of this assignment alone: the process may have the partition again before its last row is removed
	unproven int       // records that may have ended the last owner, from the first that it had not processed
	suspects []suspect // ranges in which owners before have died, in their order
	end      int64     // of the log when this process began to read it; 0: not known
	fresh    bool      // the redeliveries are over: something came that had not come to its end before
}

// Of notes, with a topic-partition's first record, that it is this process's. It costs nothing after that. The records'
// context says where the log ended when this process began to read; see [cloudevent.LogEndFrom].
func (g *Guard) Of(ctx context.Context, topic string, partition int32) (*Assignment, error) {
	at := topicPartition{topic, partition}
	g.mu.Lock()
	a, left := g.held[at], g.left[at]
	g.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a = &Assignment{guard: g, topicPartition: at, owner: rand.Text(), end: cloudevent.LogEndFrom(ctx)}
	if err := a.take(ctx, cmp.Or(left, &Assignment{})); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[at] = a
	return a, nil
}

// Inserting reports the row that was there before: a statement does not see what it writes itself.
const takePartition = `
insert into public.inbox_owner as o (consumer, topic, partition, owner, in_flight) values ($1, $2, $3, $4, $5)
on conflict (consumer, topic, partition) do update
set owner = excluded.owner, in_flight = greatest(o.in_flight, excluded.in_flight), since = clock_timestamp()
returning
    coalesce((select p.owner from public.inbox_owner p where (p.consumer, p.topic, p.partition) = ($1, $2, $3)), ''),
    coalesce((select p.in_flight from public.inbox_owner p where (p.consumer, p.topic, p.partition) = ($1, $2, $3)), 0)`

// take records that the partition is this process's, which may have left it before. It takes over from an owner that
// did not leave it.
func (a *Assignment) take(ctx context.Context, left *Assignment) error {
	cfg := &a.guard.cfg
	var before string
	err := cfg.Insist(ctx, "take partition", func(ctx context.Context) error {
		row := cfg.Pool.QueryRow(ctx, takePartition, append(a.key(), a.owner, cfg.Batch)...)
		if err := row.Scan(&before, &a.unproven); err != nil || before == "" || before == left.owner {
			return err
		}
		suspects, err := a.readSuspects(ctx, cfg.Pool)
		a.suspects = suspects
		return err
	})
	switch {
	case err != nil || before == "":
		return err
	case before == left.owner: // it came back before the database has heard that it was left
		a.unproven, a.suspects = left.unproven, left.suspects
		return nil
	}
	cfg.Log.WarnContext(ctx, "partition was not left in good order: its first events are counted before they run",
		"topic", a.topic, "partition", a.partition, "in_flight", a.unproven, "suspect_ranges", len(a.suspects))
	return nil
}

// key is the partition, as the first parameters of the statements.
func (a *Assignment) key() []any { return []any{a.guard.cfg.Consumer, a.topic, a.partition} }

// Leave says that a partition's records are no longer this process's and that none of them is under way, and returns
// how to record that. Until it is recorded the next owner counts its first records, as after a crash. It may be
// recorded late, also when the partition has come back meanwhile.
func (g *Guard) Leave(topic string, partition int32) (record func(context.Context) error) {
	left := g.drop(topic, partition, true)
	return func(ctx context.Context) error { return g.recordLeft(ctx, left) }
}

// Abandon says that a partition's records are no longer this process's, but that some may still be under way. Its row
// stays: the next owner counts its first records, as after a crash.
func (g *Guard) Abandon(topic string, partition int32) { g.drop(topic, partition, false) }

func (g *Guard) drop(topic string, partition int32, inGoodOrder bool) (dropped []*Assignment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := topicPartition{topic, partition}
	a := g.held[at]
	if a == nil {
		return nil
	}
	delete(g.held, at)
	if delete(g.left, at); inGoodOrder {
		g.left[at] = a
	}
	return []*Assignment{a}
}

// Close leaves every partition that is neither left nor abandoned. Call it when the last delivery has ended.
func (g *Guard) Close(ctx context.Context) error {
	g.mu.Lock()
	held := slices.Collect(maps.Values(g.held))
	clear(g.held)
	g.mu.Unlock()
	return g.recordLeft(ctx, held)
}

const leavePartition = `
delete from public.inbox_owner where consumer = $1 and topic = $2 and partition = $3 and owner = $4`

// What an owner before was suspected of and this one did not come to is left to the next.
const leaveSuspicious = `
update public.inbox_owner set in_flight = $5 where consumer = $1 and topic = $2 and partition = $3 and owner = $4`

func (g *Guard) recordLeft(ctx context.Context, left []*Assignment) error {
	if len(left) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, a := range left {
		if a.Suspicious() {
			batch.Queue(leaveSuspicious, append(a.key(), a.owner, a.unproven)...)
		} else {
			batch.Queue(leavePartition, append(a.key(), a.owner)...)
		}
	}
	if err := g.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("leave partitions: %w", err)
	}
	return nil
}

// Record is a record of the partition as far as an attempt needs it.
type Record struct {
	First, Last int64 // offsets; they differ where one record stands for a damaged batch
	Ignored     bool  // no handler runs for it, so it is no suspect
}

// suspect is a range of a partition's offsets in which something may end the process that handles it.
type suspect struct {
	from, to int64
	deaths   int       // attempts at the range, or at one that it is a part of, that ended a process
	owner    string    // of the last attempt at the range as it is; "" for a half that was not attempted by itself
	since    time.Time // when the last attempt began
	alone    bool      // nothing else may run in the process meanwhile
	spent    bool      // it is one record that has ended as many processes as a record may
}

// suspected says how many of the records, from the first on, may share an attempt, and what they are suspected of; nil
// for nothing. A range at which a process ended is halved:
//
//	1st death  nothing was suspected: which partition's batch it was, and from where to where, is not known
//	2nd        the first batch of each partition that was in flight ran again as it was, counted
//	3rd        the first half of the batch, or the second after the first came to its end
//	...
//	10th       the last of 200 records, by itself
func (a *Assignment) suspected(records []Record) (n int, s *suspect) {
	first, maxAttempts := records[0].First, a.guard.cfg.MaxAttempts
	a.dropSuspects(first - 1)
	n = len(records)
	if len(a.suspects) > 0 {
		if r := a.suspects[0]; r.from <= first {
			return halve(records, r, maxAttempts)
		}
		n = within(records, a.suspects[0].from-1)
	}
	if a.unproven == 0 || a.isNewer(first) {
		return n, nil
	}
	n = min(n, a.unproven)
	return n, &suspect{from: first, to: records[n-1].Last, alone: n == 1 && maxAttempts == 1}
}

// halve is the part of the range to attempt next. Where not all of the range is there yet, it is less than a half.
func halve(records []Record, r suspect, maxAttempts int) (n int, s *suspect) {
	n = within(records, r.to)
	if r.owner != "" && n > 1 {
		n = (n + 1) / 2
	}
	s = &suspect{from: records[0].First, to: records[n-1].Last, deaths: r.deaths, since: r.since, alone: true}
	if s.from == r.from && s.to == r.to {
		s.owner = r.owner
		s.spent = n == 1 && s.owner != "" && s.deaths >= maxAttempts
	}
	return n, s
}

// Settle says that the partition's records up to an offset have come to their end, so many of them not before the last
// owner did.
func (a *Assignment) Settle(upTo int64, fresh int) {
	if !a.Suspicious() {
		return
	}
	a.fresh = a.fresh || fresh > 0
	a.unproven = max(0, a.unproven-fresh)
	if a.isNewer(upTo + 1) {
		a.unproven = 0
	}
	a.dropSuspects(upTo)
	if len(a.suspects) > 0 && a.suspects[0].from <= upTo {
		a.suspects[0].from, a.suspects[0].owner = upTo+1, ""
	}
}

// dropSuspects drops the ranges that end at the offset or before.
func (a *Assignment) dropSuspects(upTo int64) {
	for len(a.suspects) > 0 && a.suspects[0].to <= upTo {
		a.suspects = a.suspects[1:]
	}
}

// Suspicious says whether anything in the partition may have ended a process and has not yet proved harmless.
func (a *Assignment) Suspicious() bool { return a.unproven > 0 || len(a.suspects) > 0 }

// isNewer says whether a record was written after this process had begun to read the partition: then it was under way
// nowhere before.
func (a *Assignment) isNewer(offset int64) bool { return a.end > 0 && offset >= a.end }

// within counts the records, from the first on, up to an offset; the first one always.
func within(records []Record, offset int64) int {
	n := 1
	for n < len(records) && records[n].Last <= offset {
		n++
	}
	return n
}
