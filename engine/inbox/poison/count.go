package poison

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
)

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

// count counts the first attempt at a range.
func (t *Attempt) count(ctx context.Context) error {
	t.counted = true
	a, s := t.assignment, t.suspect
	if _, err := a.guard.cfg.Pool.Exec(ctx, insertAttempt, append(a.key(), s.from, s.to, 1, a.owner)...); err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	return nil
}

const deleteAttempt = `
delete from public.inbox_attempt where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4`

// split counts an attempt at a part of a range and keeps the rest as a range of its own, in one transaction.
func (t *Attempt) split(ctx context.Context, records []Record) error {
	a, s := t.assignment, t.suspect
	whole, rest := a.narrow(records, s)
	t.counted = true
	batch := &pgx.Batch{}
	batch.Queue(deleteAttempt, append(a.key(), whole.from)...)
	batch.Queue(insertAttempt, append(a.key(), s.from, s.to, s.deaths+1, a.owner)...)
	if rest != nil {
		batch.Queue(insertAttempt, append(a.key(), rest.from, rest.to, rest.deaths, rest.owner)...)
	}
	if err := a.guard.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	a.guard.cfg.Log.WarnContext(ctx, "the process ended with these events under way: they run alone",
		"topic", a.topic, "partition", a.partition, "from_offset", s.from, "to_offset", s.to, "deaths", s.deaths)
	return nil
}

const forgetAttempt = deleteAttempt + ` and owner = $5`

const uncountAttempt = `
update public.inbox_attempt set attempts = $6, owner = nullif($7, '')
where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4 and owner = $5`

// uncount takes the count back.
func (t *Attempt) uncount(ctx context.Context) {
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
// of their effects; "" where there are none.
func (a *Assignment) Forget(upTo int64) (sql string, args []any) {
	if !a.Suspicious() {
		return "", nil
	}
	return forgetAttempts, append(a.key(), upTo, a.owner)
}
