package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

const emptySQL = `
select exists (select from public.outbox_parked k where retry_at <= $1
    and not exists (select from public.outbox_held h where h.topic = k.topic and h.key = k.key))`

// forgetEmpty releases keys whose last held row was discarded.
func (l *leader) forgetEmpty(ctx context.Context, now time.Time) error {
	var some bool
	if err := l.conn.QueryRow(ctx, emptySQL, now).Scan(&some); err != nil {
		return fmt.Errorf("find empty parked keys: %w", err)
	}
	if !some {
		return nil
	}
	return l.forget(ctx, nil, outcome{}, now)
}

// forget writes down, in a transaction that the epoch guards, what became of a page of held rows: those that were taken
// go, and with the last of a key the key is free.
func (l *leader) forget(ctx context.Context, taken []record, out outcome, now time.Time) error {
	fault.Here("relay.forget.before")
	var freed []keyName
	err := l.term.within(ctx, l.conn, func(tx pgx.Tx) (err error) {
		if err := writeParked(ctx, tx, out.parked); err != nil {
			return err
		}
		if err := deleteHeld(ctx, tx, taken); err != nil {
			return err
		}
		freed, err = unpark(ctx, tx, now)
		fault.Here("relay.forget.in_tx")
		return err
	})
	if err != nil {
		return fmt.Errorf("forget held rows: %w", err)
	}
	fault.Here("relay.forget.after")
	l.logParked(ctx, out.parked)
	for _, name := range freed {
		delete(l.parked, name)
		l.log.Info("key released", "topic", name.topic)
	}
	if len(taken) > 0 {
		l.takenLast = time.Now()
		l.health.well(stateLeading)
	}
	gone := map[int64]bool{}
	for _, r := range taken {
		gone[r.position] = true
	}
	l.recent.forget(func(x receipt) bool { return gone[x.position] })
	return nil
}

const deleteHeldSQL = `
delete from public.outbox_held h
using unnest($1::text[], $2::text[], $3::bigint[]) as x (topic, key, position)
where h.topic = x.topic and h.key = x.key and h.position = x.position`

func deleteHeld(ctx context.Context, tx pgx.Tx, taken []record) error {
	topics, keys, positions := columnsOf(taken)
	if _, err := tx.Exec(ctx, deleteHeldSQL, topics, keys, positions); err != nil {
		return fmt.Errorf("delete held rows: %w", err)
	}
	return nil
}

const unparkSQL = `
delete from public.outbox_parked k
where retry_at <= $1 and not exists (select from public.outbox_held h where h.topic = k.topic and h.key = k.key)
returning topic, key`

// unpark deletes the keys that were due at a time and of which nothing is held any more.
func unpark(ctx context.Context, tx pgx.Tx, now time.Time) ([]keyName, error) {
	rows, err := tx.Query(ctx, unparkSQL, now)
	if err != nil {
		return nil, fmt.Errorf("delete parked keys: %w", err)
	}
	freed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (name keyName, err error) {
		return name, row.Scan(&name.topic, &name.key)
	})
	if err != nil {
		return nil, fmt.Errorf("delete parked keys: %w", err)
	}
	return freed, nil
}
