package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/deadletter"
	"example.com/twinbox/internal/failure"
)

// gapClosed says of a key's first letter that nothing keeps it any more: it is parked, and every version below it is
// applied or passed over. A discarded event closes its gap; what parked behind one that had failed is left to whoever
// discarded it, who may send the event that was meant. With DeadPass ($3) an event that was given up closes its gap,
// too. A letter without a version has no place to wait for.
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
// key: a key may have very many letters.
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

// resumable is the letter with which a key goes on.
type resumable struct {
	id     int64
	key    []byte
	closed bool
}

// resumeBehind takes up what waited for the items, now that they are committed. It comes before the partition's next
// events, so that they find their key in order. What fails here is left to [Inbox.ResumeGaps].
func (in *Inbox) resumeBehind(items ...*item) {
	if in.cfg.Handler == nil {
		return
	}
	var seen map[string]bool
	for _, it := range items {
		if key := it.event.Key; it.frees && !seen[key] {
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[key] = true
			in.resumeKey(it.ctx, key)
		}
	}
}

func (in *Inbox) resumeKey(ctx context.Context, key string) {
	var first resumable
	err := in.cfg.Pool.QueryRow(ctx, selectClosedGap, in.cfg.Consumer, []byte(key), in.passes()).
		Scan(&first.id, &first.key)
	if errors.Is(err, pgx.ErrNoRows) {
		return
	}
	if err == nil {
		err = in.resume(ctx, first, resumeFor)
	}
	if err != nil && ctx.Err() == nil {
		in.log.WarnContext(ctx, "parked events not resumed", "error", err)
	}
}

// ResumeGaps takes up parked events whose gap has closed, until ctx ends. Mostly the event that closes a gap takes them
// along; this is for a process that died in between, and for gaps that something else closed: a discard, a replay that
// was cut off. A round looks at 1000 keys. Run it beside a versioned consumer; several at once do no harm.
func (in *Inbox) ResumeGaps(ctx context.Context) error {
	if !in.cfg.Versioned || in.cfg.Handler == nil {
		<-ctx.Done()
		return nil
	}
	rounds := time.NewTicker(in.cfg.ResumeEvery)
	defer rounds.Stop()
	behind := []byte{}
	for {
		last, err := in.resumeSome(ctx, behind)
		if behind = last; err != nil && ctx.Err() == nil {
			in.log.DebugContext(ctx, "parked events not resumed", "error", err) // the outage is told elsewhere
		}
		select {
		case <-rounds.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// resumeSome is a round. It returns the key behind which the next one goes on.
func (in *Inbox) resumeSome(ctx context.Context, behind []byte) (last []byte, err error) {
	rows, err := in.cfg.Pool.Query(ctx, selectClosedGaps, in.cfg.Consumer, behind, in.passes(), resumeKeys)
	if err != nil {
		return behind, fmt.Errorf("find closed gaps: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r resumable, err error) {
		return r, row.Scan(&r.id, &r.key, &r.closed)
	})
	if err != nil {
		return behind, fmt.Errorf("find closed gaps: %w", err)
	}
	if slices.ContainsFunc(found, func(r resumable) bool { return r.closed }) {
		n, err := in.resumeAlone(ctx, found)
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

// resumeAlone resumes what is closed unless another process is at it: each would count its attempts. It ends in time,
// and with the first key that cannot go on, and returns how many of the keys it is through with: the next round goes on
// behind them, so that no key keeps the others waiting.
func (in *Inbox) resumeAlone(ctx context.Context, found []resumable) (through int, err error) {
	end := time.Now().Add(max(in.cfg.ResumeEvery, resumeFor))
	err = pgx.BeginFunc(ctx, in.cfg.Pool, func(tx pgx.Tx) error {
		var alone bool
		if err := tx.QueryRow(ctx, lockRound, in.cfg.Consumer).Scan(&alone); err != nil {
			return err
		}
		for _, first := range found {
			if first.closed && alone {
				if err := in.resume(ctx, first, time.Until(end)); err != nil {
					through++
					return err
				}
			}
			if time.Now().After(end) {
				return nil // perhaps before the key's last letter
			}
			through++
		}
		return nil
	})
	return through, err
}

const countAttemptAt = `
update public.dead_letter set attempts = attempts + $2 where id = $1 and state = 'waiting' returning attempts`

// survive is an attempt that no operator watches over. Its count is committed before the handler runs and taken back by
// whoever lives: an event that ends the process each time would be resumed for ever.
func (r *replay) survive(ctx context.Context, l deadletter.Letter, done *Replayed) error {
	var attempts int
	err := r.in.cfg.Pool.QueryRow(ctx, countAttemptAt, l.ID, 1).Scan(&attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // settled meanwhile
	}
	if err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	const parked = 1 // counts as an attempt
	if attempts > r.in.cfg.MaxAttempts+parked {
		return r.fail(ctx, l.ID, &codedError{CodeProcessDied, failure.AsPermanent(errDied)}, done)
	}
	r.alone = attempts > 1+parked
	if err = r.insist(ctx, l, done); err == nil && done.Outcome != ReplayRefused {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
	defer cancel()
	_, uncounted := r.in.cfg.Pool.Exec(ctx, countAttemptAt, l.ID, -1)
	return errors.Join(err, uncounted)
}

// What the audit trail says of a replay that no operator ordered.
const (
	resumedBy     = "inbox"
	resumedReason = "the missing version has come"
)

// resume replays the letter and what is parked behind it, and begins with none of these after a time. No operator reads
// a refusal here, so what cannot be tried as it is becomes a dead letter like others.
func (in *Inbox) resume(ctx context.Context, first resumable, limit time.Duration) error {
	began := time.Now()
	r, err := in.newReplay(deadletter.Filter{}, ReplayOptions{By: resumedBy, Reason: resumedReason})
	if err != nil {
		return err
	}
	r.only, r.at.key = first.id, first.key
	for err == nil && !r.ended && time.Since(began) < limit {
		err = r.page(ctx)
	}
	for _, problem := range r.report.Problems {
		switch problem.Code {
		case CodeGap, CodeJump, CodeBehind:
			continue
		}
		if err == nil && problem.Outcome == ReplayRefused {
			refused := &codedError{problem.Code, failure.AsPermanent(errors.New(problem.Error))}
			err = r.fail(ctx, problem.ID, refused, &Replayed{ID: problem.ID, EventID: problem.EventID})
		}
	}
	return err
}
