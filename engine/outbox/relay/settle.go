package relay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox/window"
)

// settle waits for a flight, sends again what failed, and sets aside keys that keep others waiting. After it every
// record of the page is taken or held.
func (l *leader) settle(ctx context.Context, f *flight, out *outcome) error {
	began := time.Now()
	pauses := failure.Backoff{Min: l.cfg.RetryMin, Max: l.cfg.RetryMax}
	for attempt := 1; f != nil; attempt++ {
		if err := f.wait(); err != nil {
			return err
		}
		failed := l.sender.collect(f)
		taken := len(failed) < len(f.records)
		if l.log.Enabled(ctx, slog.LevelDebug) {
			l.logTaken(f)
		}
		if taken {
			l.patience.takenAt = time.Now()
			l.health.markWell(stateLeading)
		}
		if failed = l.setAside(failed, attempt, false, out); len(failed) == 0 {
			return nil
		}
		l.noteFailure(failed[0].err, taken)
		l.cfg.Destination.Report(failed[0].err)
		if !l.cfg.Destination.Down() && l.patience.isOver(attempt, time.Since(began), taken) {
			l.patience.parkedAt = time.Now()
			l.setAside(failed, attempt, true, out)
			return nil
		}
		first := &failed[0].Event
		l.log.Warn("publish failed", "events", len(failed), "attempt", attempt, "event_id", first.ID,
			"correlation_id", first.CorrelationID(), "error", failed[0].err)
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return err
		}
		f = l.sender.launch(ctx, recordsOf(failed))
	}
	return nil
}

// logTaken says what the broker took. It reads headers.
func (l *leader) logTaken(f *flight) {
	for i := range f.records {
		if e := &f.records[i].Event; f.results[i] == nil {
			l.log.Debug("event published", "event_id", e.ID, "event_type", e.Type, "correlation_id", e.CorrelationID(),
				"topic", e.Topic, "position", f.records[i].Position)
		}
	}
}

// noteFailure keeps why not everything was taken.
func (l *leader) noteFailure(err error, taken bool) {
	l.health.markFailed(err)
	if !taken {
		l.patience.failedAt = time.Now()
	}
}

// stuck reports whether something waits and the last that was heard of the broker is that it takes nothing. That no
// window is open then does not mean that all is well: keys that were set aside leave none open.
func (l *leader) stuck() bool {
	return len(l.parked.attempts) > 0 && l.patience.failedAt.After(l.patience.takenAt)
}

// backOff waits before a failed record is sent again, and keeps the lease meanwhile.
func (l *leader) backOff(ctx context.Context, pause time.Duration) error {
	if err := l.cfg.Destination.Pause(ctx, pause); err != nil {
		return err
	}
	if err := l.keepUp(ctx); err != nil {
		return err
	}
	return l.session.secureLease(ctx)
}

// setAside parks the keys of records that will never be taken, or of all, to be tried again later. It returns the
// failures of keys that are not parked.
func (l *leader) setAside(failed []failedRecord, attempt int, all bool, out *outcome) []failedRecord {
	for _, x := range failed {
		if isPermanent(x.err) || all && !l.parked.has(x.Key()) {
			l.park(x, attempt, out)
		}
	}
	return slices.DeleteFunc(failed, func(x failedRecord) bool {
		if !l.parked.has(x.Key()) {
			return false
		}
		out.held = append(out.held, x.Record)
		return true
	})
}

// park sets a failure's key aside: at once, so that nothing of it is sent any more, and with the outcome in the
// database.
func (l *leader) park(x failedRecord, attempts int, out *outcome) {
	if slices.ContainsFunc(out.parked, func(p parking) bool { return p.key == x.Key() }) {
		return // its first failure is the reason
	}
	out.parked = append(out.parked, l.parked.park(x, attempts))
	if isPermanent(x.err) {
		l.patience.failedAt = time.Time{} // that is an answer: the broker works
	}
	l.metrics.parkings.Inc()
}

// patience decides between waiting for the broker and setting keys aside.
type patience struct {
	attempts int           // [Config.Attempts]
	limit    time.Duration // [Config.Patience]

	takenAt  time.Time // a record was taken
	failedAt time.Time // a call failed, and not for good, of which no record was taken
	parkedAt time.Time // a key was set aside
}

// isOver: if others were taken, or have been since the last key was set aside, the broker works and only some keys
// fail. A few attempts are enough then, or a single one of a publisher that tries for long itself. Otherwise every new
// key of a partition that is down would hold up all others. If nothing is taken, waiting holds up no other key, for a
// while.
func (p *patience) isOver(attempt int, since time.Duration, taken bool) bool {
	works := taken || p.takenAt.After(p.parkedAt) && !p.parkedAt.IsZero()
	if works {
		return attempt >= p.attempts || since >= p.limit/10
	}
	return attempt >= p.attempts && since >= p.limit
}

// failedRecord is a record that was not taken, or only behind one that was not.
type failedRecord struct {
	window.Record
	err error
}

func recordsOf(failures []failedRecord) []window.Record {
	records := make([]window.Record, len(failures))
	for i := range failures {
		records[i] = failures[i].Record
	}
	return records
}

// A key of which a record cannot be published is parked: the record and all later ones of the key are held, the rest
// goes on. The cursor passes held rows; the transaction that moves it writes their positions down. So a parked key
// never keeps a window open, and never loses its place: when it is released, by an operator or by the clock, the held
// rows are published in their order, and only then, in the same transaction that forgets the last of them, new rows of
// the key are published again as they come.

// parkedKeys is the leader's copy of public.outbox_parked: it is asked about each record. Only the leader adds to that
// table and deletes from it.
type parkedKeys struct {
	due                         // held rows may be sent again
	attempts map[window.Key]int // so far
	pages    *window.Pager
	pageSize int
	retryMin time.Duration
	retryMax time.Duration
}

const loadParkedSQL = `select topic, key, attempts from public.outbox_parked`

func loadParked(ctx context.Context, conn *pgx.Conn, cfg Config) (*parkedKeys, error) {
	rows, _ := conn.Query(ctx, loadParkedSQL)
	p := &parkedKeys{
		attempts: map[window.Key]int{}, pages: window.NewPager(cfg.BatchSize, cfg.BatchBytes), pageSize: cfg.BatchSize,
		retryMin: cfg.RetryMin, retryMax: cfg.ParkedRetryMax,
	}
	var key window.Key
	var attempts int
	_, err := pgx.ForEachRow(rows, []any{&key.Topic, &key.Key, &attempts}, func() error {
		p.attempts[key] = attempts
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load parked keys: %w", err)
	}
	return p, nil
}

func (p *parkedKeys) has(key window.Key) bool {
	_, is := p.attempts[key]
	return is
}

// park sets the key of a failure aside, for good if it is permanent.
func (p *parkedKeys) park(x failedRecord, attempts int) parking {
	attempts += p.attempts[x.Key()]
	p.attempts[x.Key()] = attempts
	parked := parking{
		key: x.Key(), position: x.Position, reason: reasonOf(x.err), permanent: isPermanent(x.err), attempts: attempts,
		wait: -1,
	}
	if !parked.permanent {
		parked.wait = min(p.retryMax, p.retryMin<<min(attempts, 16))
	}
	return parked
}

// parking is a key that is parked, or parked again.
type parking struct {
	key       window.Key
	position  int64 // of its record that failed
	reason    string
	permanent bool
	attempts  int
	wait      time.Duration // before the leader tries again; -1: until released
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
	return string([]rune(string(text))) // a cut rune, or what a publisher's error quotes, may not be UTF-8
}

const parkSQL = `
insert into public.outbox_parked as p (topic, key, reason, permanent, attempts, retry_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + nullif($6::bigint, -1) * interval '1 microsecond')
on conflict (topic, key) do update
set reason = excluded.reason, permanent = excluded.permanent, attempts = excluded.attempts,
    retry_at = excluded.retry_at`

const holdSQL = `
insert into public.outbox_held (topic, key, position)
select * from unnest($1::text[], $2::text[], $3::bigint[])
on conflict do nothing`

func writeOutcome(ctx context.Context, tx pgx.Tx, out outcome) error {
	batch := &pgx.Batch{}
	queueParked(batch, out.parked)
	queueHeld(batch, holdSQL, out.held)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("park keys and hold rows: %w", err)
	}
	return nil
}

func queueParked(batch *pgx.Batch, parked []parking) {
	for _, p := range parked {
		wait := int64(-1)
		if p.wait >= 0 {
			wait = p.wait.Microseconds()
		}
		batch.Queue(parkSQL, p.key.Topic, p.key.Key, p.reason, p.permanent, min(p.attempts, 1<<30), wait)
	}
}

func queueHeld(batch *pgx.Batch, sql string, records []window.Record) {
	topics, keys, positions := make([]string, len(records)), make([]string, len(records)), make([]int64, len(records))
	for i, r := range records {
		topics[i], keys[i], positions[i] = r.Event.Topic, r.Event.Key, r.Position
	}
	batch.Queue(sql, topics, keys, positions)
}
