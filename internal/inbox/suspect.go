package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// attempt is one run of an event that may have ended a process.
type attempt struct {
	claim   *claim
	alive   pgx.Tx    // holds the record while the process lives
	record  []any     // consumer, topic, partition, offset
	counted bool      // it may have a row in inbox_attempt
	deaths  int       // that were counted before
	spent   int       // > 0: attempts that ended the process, as many as there may be
	since   time.Time // of the first
	outcome Outcome   // of the event; Failed: broken off. Any other: the event is harmless
	again   bool      // it came to its end before, so it was not what the last owner had in flight
}

// suspectTurn lets one suspect of the process run at a time: of two at once, nobody could tell which one ended it.
var suspectTurn = make(chan struct{}, 1)

// The first of them leaves no row: whoever handles the event next may not suspect it, and would not look for one.
const uncountAttempt = `
with first as (
    delete from public.inbox_attempt
    where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4 and $5 = 0)
update public.inbox_attempt set attempts = $5
where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4 and $5 > 0`

// end lets the record go. An attempt that was broken off was no death, so it is taken back. Where that fails the
// connection is closed, and the lock with it; the event is left with one attempt less.
func (a *attempt) end() {
	if a.alive == nil {
		return
	}
	defer func() { <-suspectTurn }()
	ctx, cancel := context.WithTimeout(context.Background(), rollbackLimit)
	defer cancel()
	if a.counted {
		a.conclude(ctx)
	}
	_ = a.alive.Commit(ctx)
}

// conclude leaves a count that means deaths alone. The transaction of any outcome has removed it there.
func (a *attempt) conclude(ctx context.Context) {
	switch {
	case a.outcome == Failed:
		_, _ = a.alive.Exec(ctx, uncountAttempt, append(a.record, a.deaths)...)
	case !a.again:
		a.claim.suspects--
	}
}

// holdRecord is a lock that lives as long as the process that handles the record, and no longer.
const holdRecord = `
select pg_advisory_xact_lock(hashtextextended(concat_ws('/', $1::text, $2::text, $3::int, $4::bigint), 0))`

const selectDeaths = `
select coalesce(max(attempts), 0) from public.inbox_attempt
where consumer = $1 and topic = $2 and partition = $3 and record_offset = $4`

const countAttempt = `
insert into public.inbox_attempt (consumer, topic, partition, record_offset, attempts, last_at)
values ($1, $2, $3, $4, $5, clock_timestamp())
on conflict (consumer, topic, partition, record_offset) do update
set attempts = excluded.attempts, last_at = excluded.last_at
returning last_at`

// examine counts the attempt before anything is done with a suspect, and commits the count: the process may not live
// to do it later. Events that were processed are no suspects: they proved harmless. Nor are those that are ignored,
// which run nothing. Either may come in any number before the first that was under way, and after a crash they do: what
// came to its end before must not use up the suspicion.
//
// A count must mean a death. Several owners that overlap would each count the same event while all of them live, so
// each holds the record while it handles it: whoever gets to count knows that the one who counted before has ended,
// and if that was not by dying the event is processed or its count removed.
func (in *Inbox) examine(msg *message.Message, c *claim) (a *attempt, err error) {
	a = &attempt{claim: c, outcome: Failed}
	if c == nil || c.suspects <= 0 {
		return a, nil
	}
	if known, err := in.known(msg); err != nil || known {
		return a, err
	}
	ctx := msg.Context()
	select {
	case suspectTurn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for turn: %w", context.Cause(ctx))
	}
	origin, _ := cloudevent.OriginFrom(ctx)
	a.record = []any{in.cfg.Consumer, origin.Topic, origin.Partition, origin.Offset}
	if a.alive, err = in.hold(ctx, a.record); err != nil {
		<-suspectTurn
		return nil, err
	}
	known, err := in.known(msg) // now that whoever held it before is done
	if err == nil && !known {
		err = in.count(ctx, a)
	}
	if err != nil {
		a.end()
		return nil, err
	}
	if a.deaths >= in.cfg.MaxAttempts {
		a.spent = a.deaths
	}
	return a, nil
}

// count writes what the count is to be, not that it grows: the statement may be repeated because its answer was lost,
// or broken off, and be committed all the same.
func (in *Inbox) count(ctx context.Context, a *attempt) error {
	err := in.insist(ctx, "read attempts", func(ctx context.Context) error {
		return in.cfg.Pool.QueryRow(ctx, selectDeaths, a.record...).Scan(&a.deaths)
	})
	if err != nil {
		return err
	}
	a.counted = true
	return in.insist(ctx, "count attempt", func(ctx context.Context) error {
		return in.cfg.Pool.QueryRow(ctx, countAttempt, append(a.record, a.deaths+1)...).Scan(&a.since)
	})
}

// known says whether the message's id is recorded.
func (in *Inbox) known(msg *message.Message) (known bool, err error) {
	if cloudevent.ValidID(msg.UUID) != nil {
		return false, nil
	}
	err = in.insist(msg.Context(), "read inbox row", func(ctx context.Context) error {
		return in.cfg.Pool.QueryRow(ctx, selectProcessed, in.cfg.Consumer, msg.UUID, place(msg.UUID)).Scan(&known)
	})
	return known, err
}

// hold waits until nobody else handles the record and keeps the lock in a transaction of its own.
func (in *Inbox) hold(ctx context.Context, record []any) (held pgx.Tx, err error) {
	err = in.insist(ctx, "hold record", func(limited context.Context) error {
		tx, err := in.cfg.Pool.Begin(limited)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(limited, holdRecord, record...); err != nil {
			return errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
		}
		held = tx
		return nil
	})
	return held, err
}

// forgetAttempts removes the counts of a record that comes to an end, and of those before it in its partition, which
// have come to theirs. One of these is left behind like this:
//
//	first   has died of record 5, or broke its second attempt at it off, and 5 is left with a count
//	second  got the partition in good order, or overlaps with the first: it suspects nothing, looks for no count and
//	        commits record 5
//
// No process that suspects nothing is made to look for counts, so this one stays until the next suspect of the
// partition comes to an end, or the janitor to the day. It means nothing meanwhile: 5 is processed, and known to be.
const forgetAttempts = `
delete from public.inbox_attempt
where consumer = $1 and topic = $2 and partition = $3 and record_offset <= $4`

// forgive removes the counts of suspects that come to an end in this transaction.
func (in *Inbox) forgive(ctx context.Context, tx pgx.Tx, items []*item) error {
	for _, it := range items {
		if !it.suspect {
			continue
		}
		err := Queue(ctx, tx, forgetAttempts, in.cfg.Consumer, it.origin.Topic, it.origin.Partition, it.origin.Offset)
		if err != nil {
			return fmt.Errorf("forget attempts: %w", err)
		}
	}
	return nil
}
