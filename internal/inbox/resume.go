package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
)

// ResumeParked runs parked events when no earlier event is missing, within [Config.ResumeEvery], until ctx ends. It
// returns nil. Several may run.
func (r *Replayer) ResumeParked(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.ResumeRound(ctx); err != nil && ctx.Err() == nil {
			r.in.log.WarnContext(ctx, "parked events not resumed", "error", err)
		}
		_ = failure.Sleep(ctx, r.in.cfg.ResumeEvery)
	}
	return nil
}

// The first dead letter of each key, if it is parked and every missing version was discarded.
const selectResumable = `
select k.key, d.id, d.attempts, d.version > k.version + 1 from public.inbox_key k
cross join lateral (select id, class, version, attempts from public.dead_letter
    where consumer = k.consumer and key_start = convert_to(k.key, 'UTF8') and state = 'waiting' and holds
    order by version, id limit 1) d
where k.consumer = $1 and k.key >= $2 and (k.key > $2 or $3) and k.parked_from is not null and d.class = 'parked'
    and (d.version <= k.version + 1 or d.version - k.version - 1 <= (
        select count(distinct o.version) from public.dead_letter o
        where o.consumer = k.consumer and o.key_start = convert_to(k.key, 'UTF8') and o.state = 'discarded'
            and o.version > k.version and o.version < d.version))
order by k.key limit 1`

const lookTimeout = 30 * time.Second

// ResumeRound is one round of [Replayer.ResumeParked]. After the error of an event other keys have continued.
func (r *Replayer) ResumeRound(ctx context.Context) error {
	var key string
	var failed error
	deed := uuid.NewString()
	for sameKey := true; ; {
		p := parkedEvent{deed: deed}
		looking, cancel := context.WithTimeout(ctx, lookTimeout)
		err := r.in.cfg.Pool.QueryRow(looking, selectResumable, r.in.cfg.Consumer, key, sameKey).
			Scan(&key, &p.id, &p.attempts, &p.afterDiscarded)
		cancel()
		if errors.Is(err, pgx.ErrNoRows) {
			return failed
		}
		if err != nil {
			return fmt.Errorf("look for parked events: %w", err)
		}
		sameKey, err = r.resumeOne(ctx, p)
		if errors.Is(err, deadletter.ErrNotWaiting) { // another process settled it
			sameKey, err = true, nil
		}
		failed = cmp.Or(failed, err)
	}
}

type parkedEvent struct {
	deed           string // of the round, for the audit
	id             int64
	attempts       int // the first one was the parking
	afterDiscarded bool
}

// The last attempt takes up to HandlerTimeout, and its process has twice as long to record its end.
const countResume = `
with counted as (
    update public.dead_letter set attempts = attempts + 1, failed_at = clock_timestamp()
    where id = $1 and state = 'waiting' and class = 'parked' and attempts = $2
        and (attempts <= $3 or failed_at < clock_timestamp() - $4::interval)
    returning *
)
select ` + deadletter.Columns + ` from counted`

const uncountResume = `
update public.dead_letter set attempts = attempts - 1 where id = $1 and state = 'waiting' and class = 'parked'`

// The event may end the process. So the attempt is counted before it begins, but not while another event runs alone,
// which may end it too. An attempt that decides nothing does not count.
func (r *Replayer) resumeOne(ctx context.Context, p parkedEvent) (sameKey bool, err error) {
	if err := r.in.cfg.Host.AwaitResume(ctx); err != nil {
		return false, err
	}
	alone.RLock()
	defer alone.RUnlock()
	cfg := r.in.cfg
	ctx, cancel := context.WithTimeout(ctx, 3*cfg.HandlerTimeout)
	defer cancel()
	rows, _ := cfg.Pool.Query(ctx, countResume, p.id, p.attempts, cfg.MaxAttempts, 3*cfg.HandlerTimeout)
	letter, err := pgx.CollectExactlyOneRow(rows, deadletter.Scan)
	if errors.Is(err, pgx.ErrNoRows) { // another process is at it
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("count attempt: %w", err)
	}
	l := &replayed{letter, Options{
		Change:    audit.Change{By: "inbox", Reason: "no event is missing before it any more", Deed: p.deed},
		AcceptGap: p.afterDiscarded,
	}}
	if p.attempts > cfg.MaxAttempts {
		l.Attempts = p.attempts
		return false, r.recordFailure(ctx, l,
			Result{l.ID, string(Failed), CodeProcessDied, errProcessDied.Error(), failure.Permanent})
	}
	result, err := r.try(ctx, l)
	switch {
	case err != nil || result.Code == CodeBehind || result.Code == CodeGap:
	case result.Code == "":
		return true, nil
	case result.class == failure.Unknown && p.attempts < cfg.MaxAttempts:
		r.in.log.WarnContext(ctx, "attempt failed", "event_id", l.EventID, "event_type", l.Type, "correlation_id",
			l.CorrelationID(), "attempt", p.attempts, "class", result.class, "retry_in", cfg.ResumeEvery, "error", result.Error)
		return false, nil
	default:
		if err = r.recordFailure(ctx, l, result); err == nil {
			return false, nil
		}
	}
	uncounting, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, notUncounted := cfg.Pool.Exec(uncounting, uncountResume, p.id)
	return false, errors.Join(err, notUncounted)
}
