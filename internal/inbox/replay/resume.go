package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/poison"
)

// gapClosed says of a key's first letter that nothing keeps it any more: it is parked, and every version below it is
// applied or passed over. A discarded event closes its gap; what parked behind one that had failed is left to the
// operator who discarded it and may send the event that was meant. With DeadPass ($3) an event that was given up closes
// its gap, too. A dead letter without a version has no place to wait for.
const gapClosed = `d.class = 'parked' and d.version > 0 and d.version - 1 <= coalesce(w.version, 0) + (
        select count(*) from (
            select p.version from public.inbox_passed p
            where p.consumer = $1 and p.key = convert_from(d.key_start, 'UTF8')
                and p.version > coalesce(w.version, 0) and p.version < d.version
            union
            select o.version from public.dead_letter o
            where o.consumer = $1 and o.key_start = d.key_start and o.state = 'discarded'
                and o.version > coalesce(w.version, 0) and o.version < d.version
                and (o.class = 'parked' or d.code <> 'parked_behind')
            union
            select o.version from public.dead_letter o
            where o.consumer = $1 and o.key_start = d.key_start and $3 and o.state = 'waiting'
                and not o.holds and o.remembered and o.version > coalesce(w.version, 0) and o.version < d.version
        ) as passed)`

// selectFirst looks at the first dead letters of the keys from one on, a bounded number of them, by hopping from key to
// key: a key may have very many dead letters.
const selectFirst = `
with recursive first as (
    (select 1 as n, f.id, f.key_start, f.version, f.class, f.code from public.dead_letter f
    where f.consumer = $1 and f.key_start >= $2 and f.state = 'waiting' and f.holds
    order by f.key_start, f.version, f.id limit 1)
    union all
    select before.n + 1, next.* from first before cross join lateral (
        select f.id, f.key_start, f.version, f.class, f.code from public.dead_letter f
        where f.consumer = $1 and f.key_start > before.key_start and f.state = 'waiting' and f.holds
        order by f.key_start, f.version, f.id limit 1
    ) as next
    where before.n < $4
)
select d.id, d.key_start, ` + gapClosed + ` as closed from first d
left join public.inbox_watermark w on w.consumer = $1 and w.key = convert_from(d.key_start, 'UTF8')
order by d.n`

const (
	// resumeKeys is how many keys a round of ResumeGaps looks at.
	resumeKeys = 1000
	// resumeFor is how long a partition waits while a key of it catches up. A round takes up the rest, and what comes in
	// the meantime parks behind it.
	resumeFor = time.Second
)

// resumable is the first dead letter of a key.
type resumable struct {
	ID     int64
	Key    []byte
	Closed bool // nothing keeps it: the key goes on with it
}

func (r *Replayer) selectFirst(ctx context.Context, from []byte, keys int) ([]resumable, error) {
	rows, _ := r.inbox.Pool.Query(ctx, selectFirst, r.inbox.Consumer, from, r.passes(), keys)
	first, err := pgx.CollectRows(rows, pgx.RowToStructByPos[resumable])
	if err != nil {
		return nil, fmt.Errorf("find closed gaps: %w", err)
	}
	return first, nil
}

// Resume implements [inbox.Resumer]. What fails here is left to [Replayer.ResumeGaps].
func (r *Replayer) Resume(ctx context.Context, key string) {
	first, err := r.selectFirst(ctx, []byte(key), 1)
	if len(first) == 1 && first[0].Closed && string(first[0].Key) == key {
		err = r.resumeKey(ctx, first[0], resumeFor)
	}
	if err != nil && ctx.Err() == nil {
		r.inbox.Log.WarnContext(ctx, "parked events not resumed", "error", err)
	}
}

// ResumeGaps takes up parked events whose gap has closed, until ctx ends. Mostly the event that closes a gap takes them
// along; this is for a process that died in between, and for gaps that something else closed: a discard, a replay that
// was cut off. A round looks at 1000 keys. Run it beside a versioned consumer; several at once do no harm.
func (r *Replayer) ResumeGaps(ctx context.Context) error {
	if !r.inbox.Versioned {
		<-ctx.Done()
		return nil
	}
	rounds := time.NewTicker(r.cfg.ResumeEvery)
	defer rounds.Stop()
	from := []byte{}
	for {
		next, err := r.resumeRound(ctx, from)
		if from = next; err != nil && ctx.Err() == nil {
			r.inbox.Log.DebugContext(ctx, "parked events not resumed", "error", err) // the outage is told elsewhere
		}
		select {
		case <-rounds.C:
		case <-ctx.Done():
			return nil
		}
	}
}

const lockRound = `select pg_try_advisory_xact_lock(hashtextextended('inbox/resume/' || $1::text, 0))`

// resumeRound is a round. It returns the key from which the next one goes on. What is closed is resumed unless another
// process is at it: each would count its attempts. It ends in time, and with the first key that cannot go on; the next
// round goes on behind that one, so that no key keeps the others waiting.
func (r *Replayer) resumeRound(ctx context.Context, from []byte) (next []byte, err error) {
	found, err := r.selectFirst(ctx, from, resumeKeys)
	if err != nil {
		return from, err
	}
	next = []byte{}
	if len(found) == resumeKeys {
		next = after(found[resumeKeys-1])
	}
	closed := slices.DeleteFunc(found, func(k resumable) bool { return !k.Closed })
	if len(closed) == 0 {
		return next, nil
	}
	end := time.Now().Add(max(r.cfg.ResumeEvery, resumeFor))
	err = pgx.BeginFunc(ctx, r.inbox.Pool, func(tx pgx.Tx) error {
		var alone bool
		if err := tx.QueryRow(ctx, lockRound, r.inbox.Consumer).Scan(&alone); err != nil || !alone {
			return err
		}
		for _, first := range closed {
			if err := r.resumeKey(ctx, first, time.Until(end)); err != nil || time.Now().After(end) {
				next = after(first)
				return err
			}
		}
		return nil
	})
	return next, err
}

// after is the smallest key above.
func after(k resumable) []byte { return append(slices.Clone(k.Key), 0) }

// uncountLimit bounds the statement that takes a count back.
const uncountLimit = 5 * time.Second

const countAttemptAt = `
update public.dead_letter set attempts = attempts + $2 where id = $1 and state = 'waiting' returning attempts`

// retryCounted is an attempt that no operator watches over. Its count is committed before the handler runs and taken
// back by the process that lives: an event that ends the process each time would be resumed for ever.
func (r *run) retryCounted(ctx context.Context, l deadletter.Letter, done *Result) error {
	var attempts int
	err := r.inbox.Pool.QueryRow(ctx, countAttemptAt, l.ID, 1).Scan(&attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	const parked = 1 // counts as an attempt
	if attempts > r.inbox.MaxAttempts+parked {
		died := failure.AsPermanent(&poison.DiedError{Deaths: attempts - parked})
		return r.recordFailure(ctx, l.ID, &inbox.HandlerError{Code: inbox.CodeProcessDied, Err: died}, done)
	}
	r.alone = attempts > 1+parked
	err = r.retryLetter(ctx, l, done)
	if err == nil && done.Outcome != Refused || errors.Is(err, errGone) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uncountLimit)
	defer cancel()
	_, uncounted := r.inbox.Pool.Exec(ctx, countAttemptAt, l.ID, -1)
	return errors.Join(err, uncounted)
}

// What the audit trail says of a replay that no operator ordered.
const (
	resumedBy     = "inbox"
	resumedReason = "the missing version has come"
)

// pickOfKey are the dead letters of a key that goes on: the one with which it does, and what is parked behind it.
const pickOfKey = `key_start = $2 and (id = $6 or key = $5 and class = 'parked')`

// resumeKey replays the dead letter and what is parked behind it, and begins with none of these after a time. No
// operator reads a refusal here, so what cannot be tried as it is becomes a dead letter like others.
func (r *Replayer) resumeKey(ctx context.Context, first resumable, limit time.Duration) error {
	end := time.Now().Add(limit)
	run := &run{
		Replayer: r, by: resumedBy, reason: resumedReason,
		pick: pickOfKey, args: []any{first.ID}, key: first.Key, version: -1, id: -1,
	}
	run.try = run.retryCounted
	for time.Now().Before(end) {
		done, err := run.takeUp(ctx)
		switch {
		case errors.Is(err, errGone):
			return nil
		case err != nil:
			return err
		case done.Outcome != Refused || slices.Contains([]string{inbox.CodeGap, inbox.CodeJump, CodeBehind}, done.Code):
			continue
		}
		refused := &inbox.HandlerError{Code: done.Code, Err: failure.AsPermanent(errors.New(done.Error))}
		if err := run.recordFailure(ctx, done.ID, refused, &done); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}
