package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox/window"
)

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
	return len(gone), l.recordFlush(ctx, due, gone, out)
}

const deleteHeldSQL = `
delete from public.outbox_held h
using unnest($1::text[], $2::text[], $3::bigint[]) as x (topic, key, position)
where h.topic = x.topic and h.key = x.key and h.position = x.position`

// deleteFreeSQL deletes the keys that were due at a time and of which nothing is held any more.
const deleteFreeSQL = `
delete from public.outbox_parked k
where retry_at <= $1 and not exists (select from public.outbox_held h where h.topic = k.topic and h.key = k.key)
returning topic, key`

// recordFlush writes down, in a transaction that the epoch guards, what became of a page of held rows: those that were
// taken go, and with the last of a key the key is free.
func (l *leader) recordFlush(ctx context.Context, due duePage, taken []window.Record, out outcome) error {
	fault.Here("relay.forget.before")
	var freed []window.Key
	err := l.session.do(ctx, func(ctx context.Context) error {
		return l.session.runGuarded(ctx, func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			queueParked(batch, out.parked)
			queueHeld(batch, deleteHeldSQL, taken)
			batch.Queue(deleteFreeSQL, due.asOf).Query(func(rows pgx.Rows) (err error) {
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
	pause := min(flushEvery, p.retryMax)
	if taken < len(due.Records) {
		pause = max(pause, 9*took)
	}
	return now.Add(pause)
}

// duePage is the first held rows of the keys that are due at a time.
type duePage struct {
	window.Page
	keys int
	asOf time.Time
}

// dueKeysSQL takes the keys in the order in which they became due. A key that fails gets a later time and stands behind
// all others: those of a partition that stays down, with more held rows than a page takes, keep no other key waiting.
const dueKeysSQL = `
select topic, key, statement_timestamp() from public.outbox_parked
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
	rows, _ := conn.Query(ctx, dueKeysSQL, p.pageSize)
	var topics, keys []string
	var key window.Key
	_, err = pgx.ForEachRow(rows, []any{&key.Topic, &key.Key, &due.asOf}, func() error {
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
