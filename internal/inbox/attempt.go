package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"
)

// attempt is one try at neighbours of a partition, up to where it returns or ends the process.
type attempt struct {
	in      *Inbox
	claim   *claim   // of the partition; nil when no broker delivered the items
	all     []*item  // that there are
	items   []*item  // that it is for: the first of them
	suspect *suspect // what they are suspected of; nil: of nothing
	known   bool     // all of them came to their end before
	counted bool     // it has a row in inbox_attempt
	weight  int64    // of what it holds of underWay
	lock    pgx.Tx   // keeps other processes from attempts at suspects of the partition
}

// underWay counts the attempts in this process, of all its consumers. A range that ended a process is attempted while
// there is nothing else: of two attempts, the next death would not show which one it was. All others run side by side.
var underWay = semaphore.NewWeighted(everything)

const (
	everything = 1 << 30
	// aloneLimit is how long an attempt waits for the others of the process to end, while no new one begins.
	aloneLimit = time.Second
)

var (
	errNotAlone = errors.New("other events are under way in the process")
	errHeld     = errors.New("another process attempts suspects of the partition")
	errChanged  = errors.New("another process has changed the suspects of the partition")
)

// diedError is why a record is given up that is not handled any more.
type diedError struct{ suspect }

func (*diedError) Error() string { return errDied.Error() }

// attempt checks and applies as many of the items as may share a transaction, and returns those. With an error, nothing
// of them is committed. An item that is not even to be applied ends them and is not one of them; it has the reason.
func (in *Inbox) attempt(ctx context.Context, items []*item) (tried []*item, err error) {
	a := attempt{in: in, claim: items[0].claim, all: items, items: items}
	if err := a.begin(ctx); err != nil {
		return a.items, err
	}
	applied := false
	defer func() { a.end(applied) }()
	switch {
	case a.known:
		return a.items, nil
	case a.suspect != nil && a.suspect.spent:
		return a.items, &diedError{*a.suspect}
	}
	tried = in.check(a.items)
	heard := in.heard(tried)
	if len(heard) == 0 {
		return tried, nil
	}
	if a.claim != nil {
		a.claim.upTo = tried[len(tried)-1].last()
	}
	err = in.apply(ctx, heard)
	applied = err == nil
	return tried, err
}

// heard are the items that a transaction is for: those that there are handlers for, and those that count in their key's
// order all the same.
func (in *Inbox) heard(items []*item) []*item {
	for i, it := range items {
		if !it.ignored || in.orders(it) {
			continue
		}
		heard := append(make([]*item, 0, len(items)), items[:i]...)
		for _, it := range items[i:] {
			if !it.ignored || in.orders(it) {
				heard = append(heard, it)
			}
		}
		return heard
	}
	return items
}

// begin finds out how many of the items the attempt is for, and waits until it may run. It holds nothing while it waits
// for its database: what is behind it in the process may have another one.
func (a *attempt) begin(ctx context.Context) error {
	if a.claim == nil {
		return nil
	}
	if !a.claim.suspicious() && underWay.TryAcquire(1) {
		a.weight = 1
		return nil
	}
	return a.in.insist(ctx, "begin attempt", func(ctx context.Context) error {
		err := a.enter(ctx)
		if err != nil {
			a.release()
		}
		return err
	})
}

// enter counts the attempt before anything is done with a suspect, and commits the count: the process may not live to
// do it later. What came to its end before is no suspect, and any number of it may come again before the first event
// that was under way. What there are no handlers for is none either.
func (a *attempt) enter(ctx context.Context) error {
	a.choose()
	handled := slices.DeleteFunc(slices.Clone(a.items), func(it *item) bool { return it.ignored })
	if a.suspect == nil || len(handled) == 0 {
		a.suspect = nil
		return a.acquire(ctx, 1)
	}
	if !a.claim.fresh && len(handled) == len(a.items) {
		known, err := a.in.known(ctx, handled)
		if a.known = known; err != nil || known {
			return err
		}
	}
	if a.suspect.alone {
		return a.isolate(ctx)
	}
	if err := a.acquire(ctx, 1); err != nil {
		return err
	}
	return a.count(ctx, *a.suspect)
}

func (a *attempt) choose() {
	n, s := a.claim.suspected(a.all, a.in.cfg.MaxAttempts)
	a.items, a.suspect = a.all[:n], s
}

func (a *attempt) acquire(ctx context.Context, weight int64) error {
	if err := underWay.Acquire(ctx, weight); err != nil {
		return errNotAlone
	}
	a.weight = weight
	return nil
}

const lockSuspects = `
select pg_try_advisory_xact_lock(hashtextextended(concat_ws('/', $1::text, $2::text, $3::int), 0))`

// isolate begins an attempt that nothing else runs beside. A count must mean a death, since enough of them bury the
// record. In this process nothing is under way that could die instead. Owners in other processes that overlap with this
// one would each count the same record while all of them live; so there is a lock, which lives as long as the process
// that handles the record: who gets it knows that the one who counted before has ended. What the range has come to is
// read anew then.
func (a *attempt) isolate(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, aloneLimit)
	defer cancel()
	if err := a.acquire(patient, everything); err != nil {
		return err
	}
	tx, err := a.in.cfg.Pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("hold partition: %w", err)
	}
	a.lock = tx
	locked, at := false, a.place()
	if err := tx.QueryRow(ctx, lockSuspects, at...).Scan(&locked); err != nil {
		return fmt.Errorf("hold partition: %w", err)
	}
	if !locked {
		return errHeld
	}
	if a.claim.suspects, err = readSuspects(ctx, tx, at, a.claim.owner); err != nil {
		return err
	}
	if a.choose(); a.suspect == nil || !a.suspect.alone {
		return errChanged
	}
	if a.suspect.spent {
		return nil
	}
	if a.suspect.deaths == 0 {
		return a.count(ctx, *a.suspect)
	}
	return a.split(ctx)
}

// place is the partition, as the first parameters of every statement here.
func (a *attempt) place() []any {
	at := &a.all[0].origin
	return []any{a.in.cfg.Consumer, at.Topic, at.Partition}
}

const selectSuspects = `
select record_offset, coalesce(last_offset, record_offset), attempts, coalesce(owner, ''), last_at
from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 order by record_offset`

// readSuspects reads the ranges of a partition. One that an owner itself has under way is no death: the answer to its
// count was lost, or it could not take it back.
func readSuspects(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, at []any, owner string,
) (suspects []suspect, err error) {
	rows, err := db.Query(ctx, selectSuspects, at...)
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	var s suspect
	_, err = pgx.ForEachRow(rows, []any{&s.from, &s.to, &s.deaths, &s.owner, &s.since}, func() error {
		if s.owner == owner {
			s.deaths, s.owner = s.deaths-1, ""
		}
		if s.deaths > 0 {
			suspects = append(suspects, s)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	return suspects, nil
}

// What it writes is what the count is to be, not that it grows: the statement may be repeated because its answer was
// lost, or broken off, and be committed all the same.
const insertAttempt = `
insert into public.inbox_attempt as a
    (consumer, topic, partition, record_offset, last_offset, attempts, owner, last_at)
values ($1, $2, $3, $4, $5, $6, nullif($7, ''), clock_timestamp())
on conflict (consumer, topic, partition, record_offset) do update
set last_offset = greatest(coalesce(a.last_offset, a.record_offset), excluded.last_offset),
    attempts = greatest(a.attempts, excluded.attempts), owner = excluded.owner, last_at = excluded.last_at`

// count counts the first attempt at a range.
func (a *attempt) count(ctx context.Context, s suspect) error {
	a.counted = true
	args := append(a.place(), s.from, s.to, 1, a.claim.owner)
	if _, err := a.in.cfg.Pool.Exec(ctx, insertAttempt, args...); err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	return nil
}

const deleteAttempt = `
delete from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4`

// split counts an attempt at a part of a range and keeps the rest as a range of its own, in one transaction.
func (a *attempt) split(ctx context.Context) error {
	whole, rest := a.claim.narrow(a.all, a.suspect)
	a.counted = true
	batch := &pgx.Batch{}
	batch.Queue(deleteAttempt, append(a.place(), whole.from)...)
	s := a.suspect
	batch.Queue(insertAttempt, append(a.place(), s.from, s.to, s.deaths+1, a.claim.owner)...)
	if rest != nil {
		batch.Queue(insertAttempt, append(a.place(), rest.from, rest.to, rest.deaths, rest.owner)...)
	}
	if err := a.in.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	a.in.log.WarnContext(ctx, "the process ended with these events under way: they run alone",
		"topic", a.all[0].origin.Topic, "partition", a.all[0].origin.Partition, "from_offset", s.from, "to_offset", s.to,
		"deaths", s.deaths)
	return nil
}

const forgetAttempt = deleteAttempt + ` and owner = $5`

const uncountAttempt = `
update public.inbox_attempt set attempts = $6, owner = nullif($7, '')
where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4 and owner = $5`

// end lets the next attempt begin. One that was broken off was no death, so it is taken back; where that fails the
// range is left with one attempt less. The transaction of one that was applied has removed it.
func (a *attempt) end(applied bool) {
	if a.counted && !applied {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackLimit)
		defer cancel()
		s, args := a.suspect, append(a.place(), a.suspect.from, a.claim.owner)
		if s.deaths == 0 {
			_, _ = a.in.cfg.Pool.Exec(ctx, forgetAttempt, args...)
		} else {
			_, _ = a.in.cfg.Pool.Exec(ctx, uncountAttempt, append(args, s.deaths, s.owner)...)
		}
	}
	a.release()
}

// release gives back what the attempt holds. It may be called again.
func (a *attempt) release() {
	if a.lock != nil {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackLimit)
		defer cancel()
		_ = a.lock.Rollback(ctx) // where it fails the connection is closed, and the lock with it
		a.lock = nil
	}
	if a.weight > 0 {
		underWay.Release(a.weight)
		a.weight = 0
	}
}

// Rows of other owners that overlap with this one are cut and keep their count. A row is left behind like this:
//
//	first   has died in the range, or broke an attempt at it off, and the range is left with a count
//	second  got the partition in good order, or overlaps with the first: it suspects nothing, looks for no count and
//	        commits the events
//
// No process that suspects nothing is made to look for counts, so this one stays until the next suspect of the
// partition comes to an end, or the janitor to the day. It means nothing meanwhile: the events are processed, and known
// to be.
const forgetAttempts = `
with reached as (
    delete from public.inbox_attempt
    where consumer = $1 and topic = $2 and partition = $3 and record_offset <= $4
    returning coalesce(last_offset, record_offset) as last_offset, last_at,
        case when owner = $5 then attempts - 1 else attempts end as attempts, nullif(owner, $5) as owner
)
insert into public.inbox_attempt as a
    (consumer, topic, partition, record_offset, last_offset, attempts, owner, last_at)
select $1, $2, $3, $4 + 1, max(last_offset), max(attempts), max(owner), max(last_at)
from reached where last_offset > $4 and attempts > 0 having count(*) > 0
on conflict (consumer, topic, partition, record_offset) do update
set last_offset = greatest(coalesce(a.last_offset, a.record_offset), excluded.last_offset),
    attempts = greatest(a.attempts, excluded.attempts)`

// forgive removes, in the transaction of their effects, the counts of events that come to their end.
func (in *Inbox) forgive(ctx context.Context, tx pgx.Tx, it *item, upTo int64) error {
	if it.claim == nil || !it.claim.suspicious() {
		return nil
	}
	err := Queue(ctx, tx, forgetAttempts,
		in.cfg.Consumer, it.origin.Topic, it.origin.Partition, upTo, it.claim.owner)
	if err != nil {
		return fmt.Errorf("forget attempts: %w", err)
	}
	return nil
}
