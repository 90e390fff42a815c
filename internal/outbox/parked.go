package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A key of which a record cannot be published is parked: the record and all later ones of the key are held, the rest
// goes on. The cursor passes held rows; the transaction that moves it writes their positions down. So a parked key
// never keeps a window open, and never loses its place: when it is released, by an operator or by the clock, the held
// rows are published in their order, and only then, in the same transaction that forgets the last of them, new rows of
// the key are published again as they come.

// parkedKeys is the leader's memory of public.outbox_parked. Only the leader adds to that table and deletes from it.
type parkedKeys map[keyName]int // attempts so far

func (p parkedKeys) has(name keyName) bool {
	if len(p) == 0 {
		return false
	}
	_, ok := p[name]
	return ok
}

const loadParkedSQL = `select topic, key, attempts from public.outbox_parked`

func loadParked(ctx context.Context, conn *pgx.Conn) (parkedKeys, error) {
	rows, err := conn.Query(ctx, loadParkedSQL)
	if err != nil {
		return nil, fmt.Errorf("load parked keys: %w", err)
	}
	parked := parkedKeys{}
	var name keyName
	var attempts int
	_, err = pgx.ForEachRow(rows, []any{&name.topic, &name.key, &attempts}, func() error {
		parked[name] = attempts
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load parked keys: %w", err)
	}
	return parked, nil
}

// outcome is what became of the rows of a page that is through, or of several.
type outcome struct {
	pos     int64 // the last position
	events  int
	resumed bool // some were taken in an earlier session
	parked  []parking
	held    []record
}

// add is for the next page.
func (o *outcome) add(next outcome) {
	o.pos, o.events, o.resumed = next.pos, o.events+next.events, o.resumed || next.resumed
	o.parked, o.held = append(o.parked, next.parked...), append(o.held, next.held...)
}

// parking is a key that is parked, or parked again.
type parking struct {
	name      keyName
	position  int64 // of its record that failed
	reason    string
	permanent bool
	attempts  int
	wait      time.Duration // before the leader tries again; -1: until released
}

const maxReasonBytes = 500

// park remembers the key at once, so that nothing of it is sent any more; the outcome will be written down with it.
func (l *leader) park(x failure, permanent bool, attempts int, out *outcome) {
	if i := slices.IndexFunc(out.parked, func(p parking) bool { return p.name == x.name() }); i >= 0 {
		return // its first failure is the reason
	}
	attempts += l.parked[x.name()]
	l.parked[x.name()] = attempts
	p := parking{
		name: x.name(), position: x.position, reason: reasonOf(x.err), permanent: permanent, attempts: attempts, wait: -1,
	}
	if permanent {
		l.failedLast = time.Time{} // that is an answer: the broker works
	} else {
		p.wait = min(l.cfg.ParkedRetryMax, l.cfg.RetryMin<<min(attempts, 16))
	}
	out.parked = append(out.parked, p)
	l.metrics.parkings.Inc()
}

// logParked is one line however many keys a partition takes with it.
func (l *leader) logParked(ctx context.Context, parked []parking) {
	if len(parked) == 0 {
		return
	}
	first := parked[0]
	level := slog.LevelWarn // the relay tries again: say a partition has no leader for a moment
	if slices.ContainsFunc(parked, func(p parking) bool { return p.permanent }) {
		level = slog.LevelError
	}
	l.log.Log(ctx, level, "keys parked", "keys", len(parked), "topic", first.name.topic, "position", first.position,
		"permanent", first.permanent, "attempt", first.attempts, "error", first.reason)
}

func reasonOf(err error) string {
	text := []byte(err.Error())
	text = text[:min(len(text), maxReasonBytes)]
	return string([]rune(string(text))) // a cut rune, or what a publisher's error quotes, may not be UTF-8
}

// record runs a change of the cursor together with what is to be written down, if anything, and then forgets what need
// not be remembered any more.
func (l *leader) record(
	ctx context.Context, change func(ctx context.Context, also func(pgx.Tx) error) error, out outcome,
) error {
	var also func(pgx.Tx) error
	if len(out.parked)+len(out.held) > 0 {
		also = func(tx pgx.Tx) error { return writeOutcome(tx, out) }
	}
	if err := l.onConn(ctx, func(ctx context.Context) error { return change(ctx, also) }); err != nil {
		return err
	}
	l.recorded = time.Now()
	l.logParked(ctx, out.parked)
	l.recent.forget(func(x receipt) bool { return x.position <= out.pos })
	return nil
}

const parkSQL = `
insert into public.outbox_parked as p (topic, key, reason, permanent, attempts, retry_at)
select topic, key, reason, permanent, attempts, clock_timestamp() + nullif(wait, -1) * interval '1 microsecond'
from unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::int[], $6::bigint[])
    as x (topic, key, reason, permanent, attempts, wait)
on conflict (topic, key) do update
set reason = excluded.reason, permanent = excluded.permanent, attempts = excluded.attempts,
    retry_at = excluded.retry_at`

const holdSQL = `
insert into public.outbox_held (topic, key, position)
select * from unnest($1::text[], $2::text[], $3::bigint[])
on conflict do nothing`

func writeOutcome(tx pgx.Tx, out outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if err := writeParked(ctx, tx, out.parked); err != nil {
		return err
	}
	topics, keys, positions := columnsOf(out.held)
	if _, err := tx.Exec(ctx, holdSQL, topics, keys, positions); err != nil {
		return fmt.Errorf("hold rows: %w", err)
	}
	return nil
}

func writeParked(ctx context.Context, tx pgx.Tx, parked []parking) error {
	if len(parked) == 0 {
		return nil
	}
	n := len(parked)
	topics, keys, reasons := make([]string, n), make([]string, n), make([]string, n)
	permanent, attempts, waits := make([]bool, n), make([]int32, n), make([]int64, n)
	for i, p := range parked {
		topics[i], keys[i], reasons[i], permanent[i] = p.name.topic, p.name.key, p.reason, p.permanent
		attempts[i], waits[i] = int32(min(p.attempts, 1<<30)), -1
		if p.wait >= 0 {
			waits[i] = p.wait.Microseconds()
		}
	}
	if _, err := tx.Exec(ctx, parkSQL, topics, keys, reasons, permanent, attempts, waits); err != nil {
		return fmt.Errorf("park keys: %w", err)
	}
	return nil
}

func columnsOf(records []record) (topics, keys []string, positions []int64) {
	topics, keys = make([]string, len(records)), make([]string, len(records))
	positions = make([]int64, len(records))
	for i, r := range records {
		topics[i], keys[i], positions[i] = r.topic, r.event.Key, r.position
	}
	return topics, keys, positions
}
