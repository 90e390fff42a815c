package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/poison"
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

// selectClosedGap is the first letter of a key, if nothing keeps it.
const selectClosedGap = `
select d.id, d.key_start from (
    select * from public.dead_letter f
    where f.consumer = $1 and f.key_start = $2 and f.state = 'waiting' and f.holds
    order by f.version, f.id limit 1
) as d
left join public.inbox_watermark w on w.consumer = $1 and w.key = convert_from(d.key_start, 'UTF8')
where ` + gapClosed

// selectClosedGaps looks at the first letters of the keys behind one, a bounded number of them, by hopping from key to
// key: a key may have very many dead letters.
const selectClosedGaps = `
with recursive first as (
    (select 1 as n, f.id, f.key_start, f.version, f.class, f.code from public.dead_letter f
    where f.consumer = $1 and f.key_start > $2 and f.state = 'waiting' and f.holds
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

// resumable is the dead letter with which a key goes on.
type resumable struct {
	id     int64
	key    []byte
	closed bool
}

// Resume implements [inbox.Resumer]. What fails here is left to [Replayer.ResumeGaps].
func (r *Replayer) Resume(ctx context.Context, key string) {
	var first resumable
	err := r.inbox.Pool.QueryRow(ctx, selectClosedGap, r.inbox.Consumer, []byte(key), r.passes()).
		Scan(&first.id, &first.key)
	if errors.Is(err, pgx.ErrNoRows) {
		return
	}
	if err == nil {
		err = r.resumeKey(ctx, first, resumeFor)
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
	behind := []byte{}
	for {
		last, err := r.resumeRound(ctx, behind)
		if behind = last; err != nil && ctx.Err() == nil {
			r.inbox.Log.DebugContext(ctx, "parked events not resumed", "error", err) // the outage is told elsewhere
		}
		select {
		case <-rounds.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// resumeRound is a round. It returns the key behind which the next one goes on.
func (r *Replayer) resumeRound(ctx context.Context, behind []byte) (last []byte, err error) {
	rows, _ := r.inbox.Pool.Query(ctx, selectClosedGaps, r.inbox.Consumer, behind, r.passes(), resumeKeys)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k resumable, err error) {
		return k, row.Scan(&k.id, &k.key, &k.closed)
	})
	if err != nil {
		return behind, fmt.Errorf("find closed gaps: %w", err)
	}
	if slices.ContainsFunc(found, func(k resumable) bool { return k.closed }) {
		n, err := r.resumeLocked(ctx, found)
		if n > 0 && n < len(found) {
			behind = found[n-1].key
		}
		if err != nil || n < len(found) {
			return behind, err
		}
	}
	if len(found) < resumeKeys {
		return []byte{}, nil
	}
	return found[len(found)-1].key, nil
}

const lockRound = `select pg_try_advisory_xact_lock(hashtextextended('inbox/resume/' || $1::text, 0))`

// resumeLocked resumes what is closed unless another process is at it: each would count its attempts. It ends in time,
// and with the first key that cannot go on, and returns how many of the keys it is through with: the next round goes on
// behind them, so that no key keeps the others waiting.
func (r *Replayer) resumeLocked(ctx context.Context, found []resumable) (through int, err error) {
	end := time.Now().Add(max(r.cfg.ResumeEvery, resumeFor))
	err = pgx.BeginFunc(ctx, r.inbox.Pool, func(tx pgx.Tx) error {
		var alone bool
		if err := tx.QueryRow(ctx, lockRound, r.inbox.Consumer).Scan(&alone); err != nil {
			return err
		}
		for _, first := range found {
			if first.closed && alone {
				if err := r.resumeKey(ctx, first, time.Until(end)); err != nil {
					through++
					return err
				}
			}
			if time.Now().After(end) {
				return nil // perhaps before the key's last dead letter
			}
			through++
		}
		return nil
	})
	return through, err
}

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
		return nil // settled meanwhile
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
	if err = r.retryLetter(ctx, l, done); err == nil && done.Outcome != Refused {
		return nil
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

// nextOfKey is the next dead letter of a key that goes on: the one with which it does, and what is parked behind it.
const nextOfKey = `
select ` + deadletter.Columns + ` from public.dead_letter
where consumer = $1 and state = 'waiting' and key_start = $2 and (version, id) > ($3, $4)
    and (id = $6 or key = $5 and class = 'parked')
order by version, id limit 1`

// resumeKey replays the dead letter and what is parked behind it, and begins with none of these after a time.
func (r *Replayer) resumeKey(ctx context.Context, first resumable, limit time.Duration) error {
	began := time.Now()
	run := &run{
		Replayer: r, order: order{by: resumedBy, reason: resumedReason},
		position: position{key: first.key, version: -1, id: -1},
	}
	run.next = func(ctx context.Context, q audit.Querier, _ int) ([]deadletter.Letter, error) {
		at := run.position
		return selectLetters(ctx, q, nextOfKey, r.inbox.Consumer, at.key, at.version, at.id, run.flowing, first.id)
	}
	for time.Since(began) < limit {
		letters, err := run.next(ctx, r.inbox.Pool, 1)
		if err != nil || len(letters) == 0 {
			return err
		}
		if err := run.resumeLetter(ctx, letters[0]); err != nil {
			return err
		}
	}
	return nil
}

// resumeLetter brings a dead letter to its outcome. No operator reads a refusal here, so what cannot be tried as it is
// becomes a dead letter like others.
func (r *run) resumeLetter(ctx context.Context, l deadletter.Letter) error {
	done := resultOf(l)
	if err := r.retryCounted(ctx, l, &done); err != nil || done.Outcome == "" {
		return err
	}
	r.advance(l, done)
	if err := r.noteTried(ctx, l, done); err != nil || done.Outcome != Refused {
		return err
	}
	switch done.Code {
	case inbox.CodeGap, inbox.CodeJump, CodeBehind:
		return nil
	}
	refused := &inbox.HandlerError{Code: done.Code, Err: failure.AsPermanent(errors.New(done.Error))}
	return r.recordFailure(ctx, l.ID, refused, &done)
}
