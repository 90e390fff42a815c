package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
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
// database; for good if the failure is permanent.
func (l *leader) park(x failedRecord, attempts int, out *outcome) {
	key, permanent := x.Key(), isPermanent(x.err)
	if slices.ContainsFunc(out.parked, func(p parking) bool { return p.key == key }) {
		return // its first failure is the reason
	}
	attempts += l.parked.attempts[key]
	l.parked.attempts[key] = attempts
	wait := min(l.cfg.ParkedRetryMax, l.cfg.RetryMin<<min(attempts, 16))
	if permanent {
		l.patience.failedAt = time.Time{} // that is an answer: the broker works
	}
	out.parked = append(out.parked, parking{key, x.Position, reasonOf(x.err), permanent, attempts, wait})
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
	cfg      Config
}

const loadParkedSQL = `select topic, key, attempts from public.outbox_parked`

func loadParked(ctx context.Context, conn *pgx.Conn, cfg Config) (*parkedKeys, error) {
	rows, _ := conn.Query(ctx, loadParkedSQL)
	p := &parkedKeys{attempts: map[window.Key]int{}, pages: window.NewPager(cfg.BatchSize, batchBytes), cfg: cfg}
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
	return string([]rune(string(text))) // a cut rune, or what a publisher's error quotes, may not be UTF-8
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
		batch.Queue(parkSQL, p.key.Topic, p.key.Key, p.reason, p.permanent, min(p.attempts, 1<<30), p.wait.Microseconds())
	}
}

func queueHeld(batch *pgx.Batch, sql string, records []window.Record) {
	topics, keys, positions := make([]string, len(records)), make([]string, len(records)), make([]int64, len(records))
	for i, r := range records {
		topics[i], keys[i], positions[i] = r.Event.Topic, r.Event.Key, r.Position
	}
	batch.Queue(sql, topics, keys, positions)
}

// flushParked sends one page of the held rows of parked keys that are due, if any. It reports whether more of them may
// go out at once; but a window comes first: a released partition alternates with all others.
func (l *leader) flushParked(ctx context.Context) (more bool, err error) {
	began := time.Now()
	var due duePage
	err = l.session.do(ctx, func(ctx context.Context) (err error) {
		due, err = l.parked.readDue(ctx, l.session.conn)
		return err
	})
	if err != nil {
		return false, err
	}
	if due.keys == 0 {
		l.parked.at = l.parked.nextFlush(began, 0, 0, due.Page)
		return false, nil
	}
	taken, err := l.flushPage(ctx, due)
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	l.parked.at = l.parked.nextFlush(time.Now(), time.Since(began), taken, due.Page)
	return due.More && taken > 0, nil
}

// flushPage sends a page of held rows and records what became of each.
func (l *leader) flushPage(ctx context.Context, due duePage) (taken int, err error) {
	unsent := slices.DeleteFunc(slices.Clone(due.Records), func(r window.Record) bool {
		return l.resumed[receiptOf(&r)]
	})
	if len(unsent) > 0 {
		if err := l.session.secureLease(ctx); err != nil {
			return 0, err
		}
	}
	f := l.sender.launch(ctx, unsent)
	if err := f.wait(); err != nil {
		return 0, err
	}
	var out outcome
	failed := map[int64]bool{}
	failures := l.sender.collect(f)
	for _, x := range failures {
		failed[x.Position] = true
		if errors.Is(x.err, errBehind) {
			continue
		}
		if !isPermanent(x.err) {
			l.noteFailure(x.err, len(failures) < len(unsent))
		}
		l.park(x, 1, &out)
	}
	gone := slices.DeleteFunc(slices.Clone(due.Records), func(r window.Record) bool { return failed[r.Position] })
	return len(gone), l.recordFlush(ctx, gone, out)
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
func (l *leader) recordFlush(ctx context.Context, taken []window.Record, out outcome) error {
	fault.Here("relay.forget.before")
	var freed []window.Key
	err := l.session.do(ctx, func(ctx context.Context) error {
		return l.session.runGuarded(ctx, func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			queueParked(batch, out.parked)
			queueHeld(batch, deleteHeldSQL, taken)
			batch.Queue(deleteFreeSQL).Query(func(rows pgx.Rows) (err error) {
				freed, err = pgx.CollectRows(rows, pgx.RowToStructByPos[window.Key])
				return err
			})
			err := tx.SendBatch(ctx, batch).Close()
			fault.Here("relay.forget.in_tx")
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("record held rows: %w", err)
	}
	fault.Here("relay.forget.after")
	logParked(ctx, l.log, out.parked)
	for _, key := range freed {
		delete(l.parked.attempts, key)
		l.log.Info("key released", "topic", key.Topic)
	}
	if len(taken) > 0 {
		l.patience.takenAt = time.Now()
		l.health.markWell(stateLeading)
	}
	gone := map[int64]bool{}
	for _, r := range taken {
		gone[r.Position] = true
	}
	l.sender.unrecorded = slices.DeleteFunc(l.sender.unrecorded, func(x receipt) bool { return gone[x.position] })
	return nil
}

// flushEvery is the pause between attempts to send held rows.
const flushEvery = 500 * time.Millisecond

// nextFlush keeps attempts that fail to a tenth of the time: while a partition is down, each may take as long as the
// publisher takes to give up, and all other keys wait.
func (p *parkedKeys) nextFlush(now time.Time, took time.Duration, taken int, due window.Page) time.Time {
	if taken == len(due.Records) && due.More {
		return now
	}
	pause := min(flushEvery, p.cfg.ParkedRetryMax)
	if taken < len(due.Records) {
		pause = max(pause, 9*took)
	}
	return now.Add(pause)
}

// duePage is the first held rows of the keys that are due.
type duePage struct {
	window.Page
	keys int
}

// dueKeysSQL takes the keys in the order in which they became due. A key that fails gets a later time and stands behind
// all others: those of a partition that stays down, with more held rows than a page takes, keep no other key waiting.
const dueKeysSQL = `
select topic, key from public.outbox_parked
where retry_at <= statement_timestamp() order by retry_at, topic, key limit $1`

// dueSQL reads the keys' held rows, key by key, each key's from its first on.
const dueSQL = `
select ` + window.Columns + `
from unnest($1::text[], $2::text[]) with ordinality as k (topic, key, nth)
cross join lateral (select h.position from public.outbox_held h where h.topic = k.topic and h.key = k.key
    order by h.position limit $3) h
join public.outbox o on o.position = h.position
order by k.nth, h.position
limit $3`

func (p *parkedKeys) readDue(ctx context.Context, conn *pgx.Conn) (due duePage, err error) {
	rows, _ := conn.Query(ctx, dueKeysSQL, p.cfg.BatchSize)
	var topics, keys []string
	var key window.Key
	_, err = pgx.ForEachRow(rows, []any{&key.Topic, &key.Key}, func() error {
		topics, keys = append(topics, key.Topic), append(keys, key.Key)
		return nil
	})
	if err != nil {
		return due, fmt.Errorf("read parked keys: %w", err)
	}
	if due.keys = len(keys); due.keys == 0 {
		return due, nil
	}
	if due.Page, err = p.pages.Read(ctx, conn, dueSQL, topics, keys); err != nil {
		return due, fmt.Errorf("read held rows: %w", err)
	}
	slices.SortFunc(due.Records, func(x, y window.Record) int { return cmp.Compare(x.Position, y.Position) })
	return due, nil
}
