package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const flushEvery = 500 * time.Millisecond

const nowSQL = `select clock_timestamp()`

// dueKeysSQL takes the keys in the order in which they became due. Who fails gets a later time and stands behind all
// others: a partition that stays down, with more held rows than a page takes, keeps no other's keys from their turn.
const dueKeysSQL = `
select topic, key from public.outbox_parked where retry_at <= $1 order by retry_at, topic, key limit $2`

// dueSQL reads the keys' held rows, key by key, each key's from its first on.
const dueSQL = `
select ` + columns + `
from unnest($1::text[], $2::text[]) with ordinality as k (topic, key, nth)
cross join lateral (select h.position from public.outbox_held h where h.topic = k.topic and h.key = k.key
    order by h.position limit $3) h
join public.outbox o on o.position = h.position
order by k.nth, h.position
limit $3`

func (l *leader) flushDue() bool { return len(l.parked) > 0 && !time.Now().Before(l.flushAt) }

// flush sends one page of the held rows of keys that are due. It reports whether more of them may go out at once; but
// that is the caller's next turn but one: a released partition takes turns with everybody else.
func (l *leader) flush(ctx context.Context) (more bool, err error) {
	if !l.flushDue() {
		return false, nil
	}
	began := time.Now()
	p, now, err := l.duePage(ctx)
	if err != nil {
		return false, err
	}
	if len(p.records) == 0 {
		l.flushAt = began.Add(min(flushEvery, l.cfg.ParkedRetryMax))
		return false, l.onConn(ctx, func(ctx context.Context) error { return l.forgetEmpty(ctx, now) })
	}
	taken, err := l.flushPage(ctx, p, now)
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	l.flushAt = l.nextFlush(time.Now(), time.Since(began), taken, p)
	return p.more && taken > 0, nil
}

// nextFlush keeps attempts that fail to a tenth of the time: while a partition is down, each may take as long as the
// publisher takes to give up, and everybody waits.
func (l *leader) nextFlush(now time.Time, took time.Duration, taken int, p page) time.Time {
	if taken == len(p.records) && p.more {
		return now
	}
	pause := min(flushEvery, l.cfg.ParkedRetryMax)
	if taken < len(p.records) {
		pause = max(pause, 9*took)
	}
	return now.Add(pause)
}

// duePage reads the first held rows of the keys that are due, and the time as of which they are.
func (l *leader) duePage(ctx context.Context) (p page, now time.Time, err error) {
	err = l.onConn(ctx, func(ctx context.Context) error {
		if err := l.conn.QueryRow(ctx, nowSQL).Scan(&now); err != nil {
			return fmt.Errorf("read clock: %w", err)
		}
		topics, keys, err := l.dueKeys(ctx, now)
		if err != nil {
			return err
		}
		rows, err := l.conn.Query(ctx, dueSQL, binaryResults, topics, keys, l.heldPages.limit)
		if err != nil {
			return fmt.Errorf("read held rows: %w", err)
		}
		p, err = l.heldPages.collect(rows)
		return err
	})
	slices.SortFunc(p.records, func(x, y record) int { return cmp.Compare(x.position, y.position) })
	return p, now, err
}

func (l *leader) dueKeys(ctx context.Context, now time.Time) (topics, keys []string, err error) {
	rows, err := l.conn.Query(ctx, dueKeysSQL, now, l.heldPages.limit)
	if err != nil {
		return nil, nil, fmt.Errorf("read parked keys: %w", err)
	}
	var name keyName
	_, err = pgx.ForEachRow(rows, []any{&name.topic, &name.key}, func() error {
		topics, keys = append(topics, name.topic), append(keys, name.key)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read parked keys: %w", err)
	}
	return topics, keys, nil
}

// flushPage sends a page of held rows and records what became of each, in a transaction that the epoch guards.
func (l *leader) flushPage(ctx context.Context, p page, now time.Time) (int, error) {
	var f *flight
	var out outcome
	due := slices.DeleteFunc(slices.Clone(p.records), func(r record) bool { return l.resumed[r.receipt()] })
	if len(due) > 0 {
		if err := l.secure(ctx); err != nil {
			return 0, err
		}
		f = l.sender.launch(ctx, due)
		if err := f.wait(); err != nil {
			return 0, err
		}
	}
	failed := map[int64]bool{}
	again := l.collect(f)
	for _, x := range again {
		failed[x.position] = true
		if errors.Is(x.err, errBehind) {
			continue
		}
		if !isPermanent(x.err) {
			l.failed(x.err, len(again) < len(due))
		}
		l.park(x, isPermanent(x.err), 1, &out)
	}
	taken := slices.DeleteFunc(slices.Clone(p.records), func(r record) bool { return failed[r.position] })
	err := l.onConn(ctx, func(ctx context.Context) error { return l.forget(ctx, taken, out, now) })
	return len(taken), err
}
