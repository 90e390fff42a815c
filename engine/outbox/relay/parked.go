package relay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox/window"
)

// A key of which a record cannot be published is parked: the record and all later ones of the key are held, the rest
// goes on. The cursor passes held rows; the transaction that moves it writes their positions down. So a parked key
// never keeps a window open, and never loses its place: when it is released, by an operator or by the clock, the held
// rows are published in their order, and only then, in the same transaction that forgets the last of them, new rows of
// the key are published again as they come.

// parkedKeys is the leader's copy of public.outbox_parked: it is asked about each record. Only the leader adds to that
// table and deletes from it.
type parkedKeys struct {
	attempts map[window.Key]int // so far
	flushAt  time.Time          // when held rows may be sent again
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

func (p *parkedKeys) hasAny() bool { return len(p.attempts) > 0 }

func (p *parkedKeys) has(key window.Key) bool {
	if !p.hasAny() {
		return false // without hashing the key
	}
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

func writeOutcome(ctx context.Context, tx pgx.Tx, out outcome) error {
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
		topics[i], keys[i], reasons[i], permanent[i] = p.key.Topic, p.key.Key, p.reason, p.permanent
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

func columnsOf(records []window.Record) (topics, keys []string, positions []int64) {
	topics, keys = make([]string, len(records)), make([]string, len(records))
	positions = make([]int64, len(records))
	for i, r := range records {
		topics[i], keys[i], positions[i] = r.Key().Topic, r.Key().Key, r.Position
	}
	return topics, keys, positions
}
