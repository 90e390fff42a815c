package relay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// The transaction that moves the cursor past held rows stores their positions: a parked key keeps no window open and
// never loses its place.

type settlement struct {
	parked []parking
	keys   map[key]bool // of parked
	held   []record
}

type parking struct {
	key
	position  int64 // of the record that failed
	reason    string
	permanent bool
	attempts  int
	wait      time.Duration
}

func (l *leader) holdParked(page []record, settled *settlement) (unsent []record) {
	if len(l.parked) == 0 {
		return page
	}
	for _, r := range page {
		if l.parked[r.key()] > 0 {
			settled.held = append(settled.held, r)
		} else {
			unsent = append(unsent, r)
		}
	}
	return unsent
}

// settle parks the keys of records that the publisher will never take, or of all that failed. It returns the failed
// records of other keys.
func (l *leader) settle(records []record, results []error, settled *settlement, parkAll bool) (again []record) {
	for i := range records {
		r, why := &records[i], results[i]
		if why != nil && (isPermanent(why) || parkAll && hasFailed(why)) {
			l.park(r, why, settled)
		}
		switch {
		case why == nil:
		case l.parked[r.key()] > 0:
			settled.held = append(settled.held, *r)
		default:
			again = append(again, *r)
		}
	}
	return again
}

// park takes the first failure of a key. Those of the key's later records follow from it.
func (l *leader) park(r *record, why error, settled *settlement) {
	if settled.keys[r.key()] {
		return
	}
	if settled.keys == nil {
		settled.keys = map[key]bool{}
	}
	settled.keys[r.key()] = true
	attempts := l.parked[r.key()] + 1
	l.parked[r.key()] = attempts
	wait := min(l.cfg.parkedRetryMax, l.cfg.retryMin<<min(attempts, 16))
	if isPermanent(why) {
		l.failedAt = time.Time{} // an answer: the publisher works
		wait = l.cfg.parkedRetryMax
	}
	reason := failure.Cut(why.Error(), maxReasonBytes)
	settled.parked = append(settled.parked, parking{r.key(), r.Position, reason, isPermanent(why), attempts, wait})
	l.metrics.parkings.Inc()
}

const maxReasonBytes = 500

// log writes one line however many keys are parked.
func (s settlement) log(ctx context.Context, log *slog.Logger) {
	if len(s.parked) == 0 {
		return
	}
	first, level := s.parked[0], slog.LevelWarn
	if slices.ContainsFunc(s.parked, func(p parking) bool { return p.permanent }) {
		level = slog.LevelError
	}
	log.Log(ctx, level, "keys parked", "keys", len(s.parked), "topic", first.Topic, "position", first.position,
		"permanent", first.permanent, "attempt", first.attempts, "error", first.reason)
}

const parkSQL = `
insert into public.outbox_parked (topic, key, reason, permanent, attempts, retry_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + $6 * interval '1 microsecond')
on conflict (topic, key) do update
set reason = excluded.reason, permanent = excluded.permanent, attempts = excluded.attempts,
    retry_at = excluded.retry_at`

const holdSQL = `
insert into public.outbox_held (topic, key, position)
select r.* from unnest($1::text[], $2::text[], $3::bigint[]) as r (topic, key, position)
where not exists (select from public.outbox_discarded d where d.position = r.position)
on conflict (topic, key, position) do nothing`

func (s settlement) batch() *pgx.Batch {
	batch := &pgx.Batch{}
	queueParked(batch, s.parked)
	if len(s.held) > 0 {
		queueRows(batch, holdSQL, s.held)
	}
	return batch
}

func queueParked(batch *pgx.Batch, parked []parking) {
	for _, p := range parked {
		batch.Queue(parkSQL, p.Topic, p.Key, p.reason, p.permanent, min(p.attempts, 1<<30), p.wait.Microseconds())
	}
}

func queueRows(batch *pgx.Batch, sql string, rows []record) {
	topics, keys, positions := make([]string, len(rows)), make([]string, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		topics[i], keys[i], positions[i] = r.Topic, r.Key, r.Position
	}
	batch.Queue(sql, topics, keys, positions)
}

// A key that fails again is due after all others.
const dueSQL = `
select ` + columns + `
from (select topic, key, retry_at from public.outbox_parked
    where retry_at <= (select clock_timestamp()) order by retry_at, topic, key limit $1) k
cross join lateral (select h.position from public.outbox_held h where h.topic = k.topic and h.key = k.key
    order by h.position limit $1) h
join public.outbox o on o.position = h.position
order by k.retry_at, k.topic, k.key, h.position
limit $1`

func (l *leader) flushParked(ctx context.Context) (outcome, error) {
	if len(l.parked) == 0 || time.Now().Before(l.flushAt) {
		return resting, nil
	}
	began := time.Now()
	due, more, err := l.read(ctx, dueSQL)
	if err != nil {
		return resting, err
	}
	if changed, err := l.makeReadyFor(ctx, due); changed || err != nil {
		return draining, err
	}
	var settled settlement
	if len(due) > 0 {
		results, _, err := l.send(ctx, due)
		if err != nil {
			return resting, err
		}
		l.settle(due, results, &settled, true) // their keys are parked, so what failed is held
	}
	if err := l.releaseTaken(ctx, due, settled); err != nil {
		return resting, err
	}
	allTaken := len(settled.held) == 0
	if allTaken && more {
		return draining, nil
	}
	l.flushAt = time.Now().Add(l.flushPause(time.Since(began), allTaken))
	return resting, nil
}

const flushEvery = 500 * time.Millisecond

// flushPause keeps attempts that fail to a tenth of the time: all other keys wait while one is made.
func (l *leader) flushPause(took time.Duration, allTaken bool) time.Duration {
	pause := min(flushEvery, l.cfg.parkedRetryMax)
	if allTaken {
		return pause
	}
	return max(pause, 9*took)
}

const unholdSQL = `
delete from public.outbox_held h
using unnest($1::text[], $2::text[], $3::bigint[]) as x (topic, key, position)
where h.topic = x.topic and h.key = x.key and h.position = x.position`

// Operators lock a key before its rows. With "offset 0" the planner begins with the rows, not with all parked keys.
const lockParkedSQL = `
select
from (select distinct topic, key from unnest($1::text[], $2::text[], $3::bigint[]) as r (topic, key, position)) r
cross join lateral (select from public.outbox_parked k
    where k.topic = r.topic and k.key = r.key offset 0 for update) as locked`

// Points above held rows that are published now are above their ends.
const forgetPointsSQL = `
delete from public.outbox_point
where position >= (select min(position) from unnest($1::text[], $2::text[], $3::bigint[]) as r (topic, key, position))`

// Only the leader holds rows.
const freeSQL = `
delete from public.outbox_parked k
where retry_at <= (select clock_timestamp())
    and not exists (select from public.outbox_held h where h.topic = k.topic and h.key = k.key)
returning topic, key`

func (l *leader) releaseTaken(ctx context.Context, due []record, settled settlement) error {
	taken := slices.DeleteFunc(due, func(r record) bool {
		return slices.ContainsFunc(settled.held, func(h record) bool { return h.Position == r.Position })
	})
	batch := &pgx.Batch{}
	queueRows(batch, lockParkedSQL, taken)
	queueParked(batch, settled.parked)
	queueRows(batch, unholdSQL, taken)
	queueRows(batch, forgetPointsSQL, taken)
	var freed []key
	batch.Queue(freeSQL).Query(func(rows pgx.Rows) (err error) {
		freed, err = pgx.CollectRows(rows, pgx.RowToStructByPos[key])
		return err
	})
	ends, err := l.planEndsAfterRelease(ctx, taken)
	if err != nil {
		return err
	}
	if err := l.guarded(ctx, batch, ends); err != nil {
		return fmt.Errorf("release held rows: %w", err)
	}
	for i := range taken {
		if p := taken[i].end; p != nil && p.stored.From != nil {
			p.need, p.err = max(p.need, p.known), errNotClean
			if p.state == endReady {
				p.state = endIll
			}
			l.ends.lookAt = time.Time{}
		}
	}
	settled.log(ctx, l.cfg.Log)
	for _, k := range freed {
		delete(l.parked, k)
		l.cfg.Log.Info("key released", "topic", k.Topic)
	}
	return nil
}

// beforeLostSQL finds rows before lost events of their key. A pass may have sent these events alone.
const beforeLostSQL = `
select o.position from public.outbox o
where o.position = any ($1) and exists (select from public.outbox_lost l
    where l.topic = o.topic and l.key = o.key and l.version > o.version)`

// planEndsAfterRelease returns the ends to store after held rows were published. The next passes send a row again if
// its partition is ill, because its offset may be below a consumer's, or if lost events of its key have to follow.
func (l *leader) planEndsAfterRelease(ctx context.Context, taken []record) (storedEnds, error) {
	ends := l.ends.planEnds(nil)
	if l.ends == nil || len(taken) == 0 {
		return ends, nil
	}
	positions := make([]int64, len(taken))
	for i := range taken {
		positions[i] = taken[i].Position
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(ctx, beforeLostSQL, positions)
	beforeLost, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("find lost events behind held rows: %w", err)
	}
	for _, r := range taken {
		if r.end == nil {
			continue
		}
		next := ends[r.end.topicPartition]
		if next.From == nil && !slices.Contains(beforeLost, r.Position) {
			continue
		}
		if next.From == nil || r.Position <= *next.From {
			next.From = new(r.Position - 1)
		}
		ends[r.end.topicPartition] = next
	}
	return ends, nil
}
