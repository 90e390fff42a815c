package poison

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/failure"
)

// Attempt is one try at neighbours of a partition, up to where it returns or ends the process. The zero value is one at
// records that no broker delivered.
type Attempt struct {
	// N is how many of the records it is for, from the first on.
	N int
	// Known says that all of them came to their end before: there is nothing to do.
	Known bool
	// Died says that the record is not to be handled any more.
	Died *DiedError

	assignment *Assignment
	suspect    *suspect // what the records are suspected of; nil: of nothing
	counted    bool     // it has a row in inbox_attempt
	weight     int64    // of what it holds of underWay
	lock       pgx.Tx   // keeps other processes from attempts at suspects of the partition
}

// DiedError is why a record is given up that was not let finish.
type DiedError struct {
	Deaths int
	Since  time.Time // when the last attempt began
}

func (*DiedError) Error() string { return "the process ended each time it handled the record" }

// underWay counts the attempts in this process, of all its consumers. A range that ended a process is attempted while
// there is nothing else: of two attempts, the next death would not show which one it was. All others run side by side.
var underWay = semaphore.NewWeighted(everything)

const (
	everything = 1 << 30
	// aloneLimit is how long an attempt waits for the others of the process to end, while no new one begins.
	aloneLimit = time.Second
	// endLimit bounds what an attempt does with the database when it is over.
	endLimit = 5 * time.Second
)

var (
	errNotAlone = errors.New("other events are under way in the process")
	errHeld     = errors.New("another process attempts suspects of the partition")
	errChanged  = errors.New("another process has changed the suspects of the partition")
)

// Enter begins something else than an attempt in a partition, such as a replay, beside the others of the process, but
// not beside one at a suspect: if it ended the process, the suspect would be blamed. What may have ended a process
// itself runs alone.
func Enter(ctx context.Context, alone bool) (leave func(), err error) {
	var t Attempt
	if err := t.acquire(ctx, alone); err != nil {
		return nil, failure.AsTransient(err)
	}
	return func() { t.End(true) }, nil
}

// TryBegin begins an attempt at n records where nothing is suspected and nothing has to be waited for.
func (a *Assignment) TryBegin(n int) (t Attempt, begun bool) {
	if a.guard == nil {
		return Attempt{N: n}, true
	}
	if a.Suspicious() || !underWay.TryAcquire(1) {
		return Attempt{}, false
	}
	return Attempt{N: n, assignment: a, weight: 1}, true
}

// Begin finds out how many of the records the attempt is for, and waits until it may run. known says whether the first
// n of them were processed before. It holds nothing while it waits for its database: what is behind it in the process
// may have another one.
func (a *Assignment) Begin(
	ctx context.Context, records []Record, known func(ctx context.Context, n int) (bool, error),
) (Attempt, error) {
	var t Attempt
	err := a.guard.cfg.Insist(ctx, "begin attempt", func(ctx context.Context) error {
		t = Attempt{assignment: a}
		err := t.enter(ctx, records, known)
		if err != nil {
			t.End(false)
		}
		return err
	})
	return t, err
}

// enter counts the attempt before anything is done with a suspect, and commits the count: the process may not live to
// do it later. What came to its end before is no suspect, and any number of it may come again before the first record
// that was under way. What there are no handlers for is none either.
func (t *Attempt) enter(
	ctx context.Context, records []Record, known func(ctx context.Context, n int) (bool, error),
) error {
	t.N, t.suspect = t.assignment.suspected(records)
	ignored := 0
	for _, r := range records[:t.N] {
		if r.Ignored {
			ignored++
		}
	}
	if t.suspect == nil || ignored == t.N {
		t.suspect = nil
		return t.acquire(ctx, false)
	}
	if !t.assignment.fresh && ignored == 0 {
		all, err := known(ctx, t.N)
		if t.Known = all; err != nil || all {
			return err
		}
	}
	if t.suspect.alone {
		return t.isolate(ctx, records)
	}
	if err := t.acquire(ctx, false); err != nil {
		return err
	}
	return t.count(ctx, records)
}

func (t *Attempt) acquire(ctx context.Context, alone bool) error {
	weight := int64(1)
	if alone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, aloneLimit)
		defer cancel()
		weight = everything
	}
	if err := underWay.Acquire(ctx, weight); err != nil {
		return errNotAlone
	}
	t.weight = weight
	return nil
}

const lockSuspects = `
select pg_try_advisory_xact_lock(hashtextextended(concat_ws('/', $1::text, $2::text, $3::int), 0))`

// isolate begins an attempt that nothing else runs beside. A count must mean a death, since enough of them give up the
// record. In this process nothing is under way that could die instead. Owners in other processes that overlap with this
// one would each count the same record while all of them live; so there is a lock, which lives as long as the process
// that handles the record: the owner that gets it knows that the one that counted before has ended. What the range has
// come to is read anew then.
func (t *Attempt) isolate(ctx context.Context, records []Record) error {
	a := t.assignment
	if err := t.acquire(ctx, true); err != nil {
		return err
	}
	tx, err := a.guard.cfg.Pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("hold partition: %w", err)
	}
	t.lock = tx
	locked := false
	if err := tx.QueryRow(ctx, lockSuspects, a.key()...).Scan(&locked); err != nil {
		return fmt.Errorf("hold partition: %w", err)
	}
	if !locked {
		return errHeld
	}
	if a.suspects, err = a.readSuspects(ctx, tx); err != nil {
		return err
	}
	if t.N, t.suspect = a.suspected(records); t.suspect == nil || !t.suspect.alone {
		return errChanged
	}
	if t.suspect.spent {
		t.Died = &DiedError{t.suspect.deaths, t.suspect.since}
		return nil
	}
	return t.count(ctx, records)
}

// End lets the next attempt begin. One that was broken off was no death, so it is taken back; where that fails the
// range is left with one attempt less. The transaction of one that was applied has removed it.
func (t *Attempt) End(applied bool) {
	if t.counted && !applied {
		t.uncount()
	}
	if t.lock != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		_ = t.lock.Rollback(ctx) // where it fails the connection is closed, and the lock with it
	}
	if t.weight > 0 {
		underWay.Release(t.weight)
	}
}

const selectSuspects = `
select record_offset, coalesce(last_offset, record_offset), attempts, coalesce(owner, ''), last_at
from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 order by record_offset`

// readSuspects reads the ranges of a partition. One that an owner itself has under way is no death: the answer to its
// count was lost, or it could not take it back.
func (a *Assignment) readSuspects(ctx context.Context, q audit.Querier) (suspects []suspect, err error) {
	rows, _ := q.Query(ctx, selectSuspects, a.key()...)
	var s suspect
	_, err = pgx.ForEachRow(rows, []any{&s.from, &s.to, &s.deaths, &s.owner, &s.since}, func() error {
		if s.owner == a.owner {
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

const deleteAttempt = `
delete from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4`

// count counts the first attempt at a range; or one at a part of a range, which it replaces by its parts: the one to
// attempt and the rest, with the deaths of the range, in one transaction.
func (t *Attempt) count(ctx context.Context, records []Record) error {
	a, s, batch := t.assignment, t.suspect, &pgx.Batch{}
	if s.deaths > 0 {
		whole, parts := a.suspects[0], []suspect{*s}
		batch.Queue(deleteAttempt, append(a.key(), whole.from)...)
		if s.to < whole.to {
			rest := suspect{from: s.to + 1, to: whole.to, deaths: whole.deaths, since: whole.since}
			if records[within(records, whole.to)-1].Last < whole.to {
				rest.owner = whole.owner // it may still be more than a half
			}
			parts = append(parts, rest)
			batch.Queue(insertAttempt, append(a.key(), rest.from, rest.to, rest.deaths, rest.owner)...)
		}
		a.suspects = append(parts, a.suspects[1:]...)
	}
	batch.Queue(insertAttempt, append(a.key(), s.from, s.to, s.deaths+1, a.owner)...)
	if err := a.guard.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	if t.counted = true; s.deaths > 0 {
		a.guard.cfg.Log.WarnContext(ctx, "the process ended with these events under way: they run alone",
			"topic", a.topic, "partition", a.partition, "from_offset", s.from, "to_offset", s.to, "deaths", s.deaths)
	}
	return nil
}

const forgetAttempt = deleteAttempt + ` and owner = $5`

const uncountAttempt = `
update public.inbox_attempt set attempts = $6, owner = nullif($7, '')
where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4 and owner = $5`

// uncount takes the count back.
func (t *Attempt) uncount() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	s, sql, args := t.suspect, forgetAttempt, append(t.assignment.key(), t.suspect.from, t.assignment.owner)
	if s.deaths > 0 {
		sql, args = uncountAttempt, append(args, s.deaths, s.owner)
	}
	_, _ = t.assignment.guard.cfg.Pool.Exec(ctx, sql, args...)
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

// Forget returns the statement that removes the counts of records up to an offset, which belongs into the transaction
// of their effects. There are none where nothing is suspicious.
func (a *Assignment) Forget(upTo int64) (sql string, args []any) {
	return forgetAttempts, append(a.key(), upTo, a.owner)
}
