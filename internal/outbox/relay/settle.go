package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox/window"
)

// settle waits for a flight, sends again what failed, and sets aside keys that keep others waiting. What was held
// before is tried once. After it every record of the page is taken or held.
func (l *leader) settle(ctx context.Context, f *flight, wereHeld bool, out *outcome) error {
	began := time.Now()
	pauses := failure.Backoff{Min: l.cfg.RetryMin, Max: l.cfg.RetryMax}
	for attempt := 1; f != nil; attempt++ {
		failed, err := l.collect(f)
		if err != nil {
			return err
		}
		if l.cfg.Log.Enabled(ctx, slog.LevelDebug) {
			f.logTaken(l.cfg.Log)
		}
		taken := failed < len(f.records)
		if taken {
			l.takenAt = time.Now()
			l.health.markWell(stateLeading)
		}
		if failed == 0 {
			return nil
		}
		first, giveUp := slices.IndexFunc(f.results, isTransient), wereHeld
		if first >= 0 && !wereHeld {
			l.cfg.Destination.Report(f.results[first])
			mayPark := slices.ContainsFunc(f.results, hasFailed) && !l.cfg.Destination.Down()
			if mayPark && l.isPatienceOver(attempt, time.Since(began), taken) {
				giveUp, l.parkedAt = true, time.Now()
			}
		}
		again := l.setAside(f, attempt, giveUp, out)
		if first >= 0 {
			l.health.markFailed(f.results[first])
			if !taken {
				l.failedAt = time.Now()
			}
		}
		if len(again) == 0 {
			return nil
		}
		e := &f.records[first].Event
		l.cfg.Log.Warn("publish failed", "events", len(again), "attempt", attempt, "event_id", e.ID,
			"correlation_id", e.CorrelationID(), "error", f.results[first])
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return err
		}
		f = l.launch(ctx, again)
	}
	return nil
}

// logTaken says what the broker took. It reads headers.
func (f *flight) logTaken(log *slog.Logger) {
	for i := range f.records {
		if e := &f.records[i].Event; f.results[i] == nil {
			log.Debug("event published", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic, "position", f.records[i].Position)
		}
	}
}

// backOff waits before a failed record is sent again, and keeps the lease meanwhile.
func (l *leader) backOff(ctx context.Context, pause time.Duration) error {
	if err := l.cfg.Destination.Pause(ctx, pause); err != nil {
		return err
	}
	if err := l.keepUp(ctx); err != nil {
		return err
	}
	return l.secureLease(ctx, l.sendingTime)
}

// isPatienceOver decides between waiting for the broker and setting keys aside. If others were taken, or have been
// since the last key was set aside, the broker works and only some keys fail. A few attempts are enough then, or a
// single one of a publisher that tries for long itself. Otherwise every new key of a partition that is down would hold
// up all others. If nothing is taken, waiting holds up no other key, for a while.
func (l *leader) isPatienceOver(attempt int, since time.Duration, taken bool) bool {
	works := taken || l.takenAt.After(l.parkedAt) && !l.parkedAt.IsZero()
	if works {
		return attempt >= l.cfg.Attempts || since >= l.cfg.Patience/10
	}
	return attempt >= l.cfg.Attempts && since >= l.cfg.Patience
}

// A key of which a record cannot be published is parked: the record and all later ones of the key are held, the rest
// goes on. The cursor passes held rows; the transaction that moves it writes their positions down. So a parked key
// never keeps a window open, and never loses its place: when it is released, by an operator or by the clock, the held
// rows are published in their order, and only then, in the same transaction that forgets the last of them, new rows of
// the key are published again as they come.

// setAside parks the keys of records that will never be taken, or of all that failed, to be tried again later. What
// failed of parked keys is held; it returns the rest.
func (l *leader) setAside(f *flight, attempt int, all bool, out *outcome) (again []window.Record) {
	for i, r := range f.records {
		why := f.results[i]
		if isPermanent(why) || all && hasFailed(why) {
			l.park(&r, why, attempt, out)
		}
		switch {
		case why == nil:
		case l.parked[r.Key()] > 0:
			out.held = append(out.held, r)
		default:
			again = append(again, r)
		}
	}
	return again
}

// isTransient is about a key's first failure, which decides about it.
func isTransient(why error) bool {
	return why != nil && !errors.Is(why, errBehind) && !isPermanent(why)
}

// hasFailed is about a failure that may park its key although another attempt may cure it.
func hasFailed(why error) bool { return isTransient(why) && !isUnfinished(why) }

// park sets a key aside whose record failed: at once, so that nothing of it is sent any more, and with the outcome in
// the database; for good if the failure is permanent.
func (l *leader) park(r *window.Record, why error, attempts int, out *outcome) {
	key, permanent := r.Key(), isPermanent(why)
	attempts += l.parked[key]
	l.parked[key] = attempts
	wait := min(l.cfg.ParkedRetryMax, l.cfg.RetryMin<<min(attempts, 16))
	if permanent {
		l.failedAt = time.Time{} // that is an answer: the broker works
	}
	out.parked = append(out.parked, parking{key, r.Position, reasonOf(why), permanent, attempts, wait})
	l.metrics.parkings.Inc()
}

// parking is a key that is parked, or parked again.
type parking struct {
	key       window.Key
	position  int64 // of its record that failed
	reason    string
	permanent bool
	attempts  int
	wait      time.Duration // before the leader tries again; a permanent one waits until it is released
}

const maxReasonBytes = 500

// logParked is one line however many keys a partition takes with it.
func logParked(ctx context.Context, log *slog.Logger, parked []parking) {
	if len(parked) == 0 {
		return
	}
	first := parked[0]
	level := slog.LevelWarn // the relay tries again: say a partition has no leader for a moment
	if slices.ContainsFunc(parked, func(p parking) bool { return p.permanent }) {
		level = slog.LevelError
	}
	log.Log(ctx, level, "keys parked", "keys", len(parked), "topic", first.key.Topic, "position", first.position,
		"permanent", first.permanent, "attempt", first.attempts, "error", first.reason)
}

func reasonOf(err error) string {
	text := []byte(err.Error())
	text = text[:min(len(text), maxReasonBytes)]
	// A cut rune, or what a publisher's error quotes, may not be UTF-8; and the column takes no NUL.
	return strings.ReplaceAll(string([]rune(string(text))), "\x00", "\uFFFD")
}

const parkSQL = `
insert into public.outbox_parked as p (topic, key, reason, permanent, attempts, retry_at)
values ($1, $2, $3, $4, $5, case when not $4 then clock_timestamp() + $6::bigint * interval '1 microsecond' end)
on conflict (topic, key) do update
set reason = excluded.reason, permanent = excluded.permanent, attempts = excluded.attempts,
    retry_at = excluded.retry_at`

const holdSQL = `
insert into public.outbox_held (topic, key, position)
select * from unnest($1::text[], $2::text[], $3::bigint[])
on conflict do nothing`

// writeOutcome writes down keys that are parked, and adds or deletes held rows.
func writeOutcome(ctx context.Context, tx pgx.Tx, parked []parking, heldSQL string, held []window.Record) error {
	batch := &pgx.Batch{}
	for _, p := range parked {
		batch.Queue(parkSQL, p.key.Topic, p.key.Key, p.reason, p.permanent, min(p.attempts, 1<<30), p.wait.Microseconds())
	}
	topics, keys, positions := make([]string, len(held)), make([]string, len(held)), make([]int64, len(held))
	for i, r := range held {
		topics[i], keys[i], positions[i] = r.Event.Topic, r.Event.Key, r.Position
	}
	batch.Queue(heldSQL, topics, keys, positions)
	return tx.SendBatch(ctx, batch).Close()
}

// dueKeysSQL takes the keys in the order in which they became due. A key that fails gets a later time and stands behind
// all others: those of a partition that stays down, with more held rows than a page takes, keep no other key waiting.
const dueKeysSQL = `
select array_agg(topic), array_agg(key) from (
    select topic, key from public.outbox_parked
    where retry_at <= statement_timestamp() order by retry_at, topic, key limit $1) k`

// dueSQL reads the keys' held rows, key by key, each key's from its first on.
const dueSQL = `
select ` + window.Columns + `
from unnest($1::text[], $2::text[]) with ordinality as k (topic, key, nth)
cross join lateral (select h.position from public.outbox_held h where h.topic = k.topic and h.key = k.key
    order by h.position limit $3) h
join public.outbox o on o.position = h.position
order by k.nth, h.position
limit $3`

// flushParked sends one page of the first held rows of parked keys that are due, if any. It reports whether more of
// them may go out at once; but a window comes first: a released partition alternates with all others. What was taken is
// recorded, and held rows are written down, before any of them may be sent.
func (l *leader) flushParked(ctx context.Context) (more bool, err error) {
	if err := l.record(ctx); err != nil {
		return false, err
	}
	began := time.Now()
	var topics, keys []string
	var due window.Page
	err = l.do(ctx, func(ctx context.Context) error {
		err := l.conn.QueryRow(ctx, dueKeysSQL, l.cfg.BatchSize).Scan(&topics, &keys)
		if err == nil && len(keys) > 0 {
			due, err = l.pages.Read(ctx, l.conn, dueSQL, topics, keys)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read held rows: %w", err)
	}
	taken := 0
	if len(keys) > 0 { // one may have no rows, and is free then
		if taken, err = l.flushPage(ctx, due.Records); err != nil {
			return false, err
		}
	}
	l.flushAt = l.nextFlush(time.Now(), time.Since(began), taken, due)
	return due.More && taken > 0, nil
}

// flushPage sends a page of held rows and records what became of each.
func (l *leader) flushPage(ctx context.Context, held []window.Record) (taken int, err error) {
	unsent := slices.DeleteFunc(slices.Clone(held), func(r window.Record) bool {
		return l.resumed[receipt{r.Position, r.ID}]
	})
	if err := l.secureLease(ctx, l.sendingTime); err != nil {
		return 0, err
	}
	var out outcome
	if err := l.settle(ctx, l.launch(ctx, unsent), true, &out); err != nil {
		return 0, err
	}
	failed := positionsOf(out.held)
	gone := slices.DeleteFunc(held, func(r window.Record) bool { return failed[r.Position] })
	return len(gone), l.recordFlush(ctx, gone, out.parked)
}

func positionsOf(records []window.Record) map[int64]bool {
	positions := make(map[int64]bool, len(records))
	for _, r := range records {
		positions[r.Position] = true
	}
	return positions
}

const deleteHeldSQL = `
delete from public.outbox_held h
using unnest($1::text[], $2::text[], $3::bigint[]) as x (topic, key, position)
where h.topic = x.topic and h.key = x.key and h.position = x.position`

// deleteFreeSQL deletes the keys that are due and of which nothing is held any more. Only the leader holds rows, and it
// has written down all of them by now.
const deleteFreeSQL = `
delete from public.outbox_parked k
where retry_at <= clock_timestamp()
    and not exists (select from public.outbox_held h where h.topic = k.topic and h.key = k.key)
returning topic, key`

// recordFlush writes down, in a transaction that the epoch guards, what became of a page of held rows: those that were
// taken go, and with the last of a key the key is free.
func (l *leader) recordFlush(ctx context.Context, taken []window.Record, failed []parking) error {
	fault.Here("relay.forget.before")
	var freed []window.Key
	err := l.do(ctx, func(ctx context.Context) error {
		return l.runGuarded(ctx, func(tx pgx.Tx) error {
			err := writeOutcome(ctx, tx, failed, deleteHeldSQL, taken)
			if err == nil {
				rows, _ := tx.Query(ctx, deleteFreeSQL)
				freed, err = pgx.CollectRows(rows, pgx.RowToStructByPos[window.Key])
			}
			fault.Here("relay.forget.in_tx")
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("record held rows: %w", err)
	}
	fault.Here("relay.forget.after")
	logParked(ctx, l.cfg.Log, failed)
	for _, key := range freed {
		delete(l.parked, key)
		l.cfg.Log.Info("key released", "topic", key.Topic)
	}
	gone := positionsOf(taken)
	l.unrecorded = slices.DeleteFunc(l.unrecorded, func(x receipt) bool { return gone[x.position] })
	return nil
}

// flushEvery is the pause between attempts to send held rows.
const flushEvery = 500 * time.Millisecond

// nextFlush keeps attempts that fail to a tenth of the time: while a partition is down, each may take as long as the
// publisher takes to give up, and all other keys wait.
func (l *leader) nextFlush(now time.Time, took time.Duration, taken int, due window.Page) time.Time {
	if taken == len(due.Records) && due.More {
		return now
	}
	pause := min(flushEvery, l.cfg.ParkedRetryMax)
	if taken < len(due.Records) {
		pause = max(pause, 9*took)
	}
	return now.Add(pause)
}
