package relay

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// passSQL selects the rows that have been sent, and those of a key before its lost events: a database that went back
// may not know that they are published.
const passSQL = `
select ` + columns + `
from public.outbox o
where o.position > $1
    and (pg_visible_in_snapshot(o.xid, $2::pg_snapshot)
        or coalesce(o.position <= $4 and pg_visible_in_snapshot(o.xid, $3::pg_snapshot), false)
        or exists (select from public.outbox_lost l
            where l.topic = o.topic and l.key = o.key and l.version > o.version))
    and o.topic = any ($5)
    and not exists (select from public.outbox_held h
        where h.topic = o.topic and h.key = o.key and h.position <= o.position)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $6`

// A pass is a partition's last one if the partition's end was high enough when it began: then it lies above every
// offset that a consumer can have.
func (l *leader) pass(ctx context.Context, ill []*finding) (clean bool, err error) {
	isLast := map[*end]bool{}
	above, topics, of := *ill[0].stored.From, []string{}, map[*end]bool{}
	for _, f := range ill {
		above = min(above, *f.stored.From)
		topics = append(topics, f.topic)
		of[f.end], isLast[f.end] = true, f.to >= f.need
	}
	lost, err := l.lostOf(ctx, topics, of)
	if err != nil {
		return false, err
	}
	sent := map[*end]int{}
	for more := true; more; {
		var rows, page []record
		var open *string
		if l.open != nil {
			open = &l.open.text
		}
		rows, more, err = l.read(ctx, passSQL, above, l.done.text, open, l.upTo, topics)
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			above = r.Position
			if p := l.ends.place(&r); of[p] && r.Position > *p.stored.From {
				page = append(page, lost.before(&r)...)
				r.resent = true
				page = append(page, r)
			}
		}
		if !more {
			page = append(page, lost.rest()...)
		}
		for len(page) > 0 {
			if stops, err := l.isStopped(ctx); stops || err != nil {
				return false, err
			}
			if err := l.maintain(ctx); err != nil {
				return false, err
			}
			var part []record
			part, page = l.cutCall(page)
			if clean, err := l.resend(ctx, part); err != nil || !clean {
				return false, err
			}
			for i := range part {
				sent[part[i].end]++
			}
		}
	}
	return l.endPass(ctx, of, isLast, sent)
}

const isPausedSQL = `select paused_at is not null from public.outbox_cursor`

// isStopped is asked between the calls of a pass, which can send all rows that are kept.
func (l *leader) isStopped(ctx context.Context) (paused bool, err error) {
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	if err := l.conn.QueryRow(ctx, isPausedSQL).Scan(&paused); err != nil {
		return true, fmt.Errorf("ask whether the relay is paused: %w", err)
	}
	return paused, nil
}

func (l *leader) resend(ctx context.Context, records []record) (clean bool, err error) {
	results, err := l.transmit(ctx, records)
	if err != nil {
		return false, err
	}
	l.note(records, results)
	if slices.ContainsFunc(results, isTransient) {
		return false, nil
	}
	var settled settlement
	for i, why := range results {
		r := &records[i]
		switch {
		case why == nil:
			l.metrics.resent.Inc()
			continue
		case isPermanent(why):
			l.park(r, why, &settled)
		}
		if r.lost {
			l.cfg.Log.Error("a lost event cannot be sent again", "event_id", r.ID, "topic", r.Topic, "error", why)
		} else {
			settled.held = append(settled.held, *r)
		}
	}
	batch := settled.batch()
	if batch.Len() == 0 {
		return true, nil
	}
	settled.log(ctx, l.cfg.Log)
	return true, l.guarded(ctx, batch)
}

func (l *leader) endPass(ctx context.Context, of, isLast map[*end]bool, sent map[*end]int) (more bool, err error) {
	plan := l.ends.plan(nil)
	healed, records := 0, 0
	for p := range of {
		switch {
		case sent[p] == 0:
			p.ready = true // a page comes first
		case isLast[p]:
			plan[p.topicPartition] = storedEnd{End: p.known, Time: p.time, Expected: p.known}
			healed, records = healed+1, records+sent[p]
		default:
			more = true
		}
	}
	if healed == 0 {
		return more, nil
	}
	if _, _, err := l.change(ctx, nil, setEnds, plan); err != nil {
		return false, fmt.Errorf("store the end of a heal: %w", err)
	}
	l.ends.apply(plan)
	for p := range of {
		if isLast[p] && sent[p] > 0 {
			p.need, p.told = p.known, false
		}
	}
	l.cfg.Log.Info("healed", "partitions", healed, "records", records)
	return true, nil
}

type lostEvents map[key][]record

const lostOfSQL = `
select event_id, key, topic, payload, headers from public.outbox_lost where topic = any ($1)
order by topic, key, version`

func (l *leader) lostOf(ctx context.Context, topics []string, of map[*end]bool) (lostEvents, error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	found := lostEvents{}
	rows, _ := l.conn.Query(ctx, lostOfSQL, topics)
	var id, name, topic string
	var payload []byte
	var headers map[string]string
	_, err := pgx.ForEachRow(rows, []any{&id, &name, &topic, &payload, &headers}, func() error {
		m := message.NewMessage(id, slices.Clone(payload))
		m.Metadata = headers
		m.Metadata[event.KeyMetadata] = name
		headers = nil
		e, err := event.FromMessage(m)
		if err != nil {
			return err
		}
		e.Topic = topic
		position, err := strconv.ParseInt(m.Metadata[event.HeaderPosition], 10, 64)
		r := record{Position: position, Event: e, lost: true, resent: true}
		if of[l.ends.place(&r)] {
			found[r.key()] = append(found[r.key()], r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read lost events: %w", err)
	}
	return found, nil
}

func (e lostEvents) before(r *record) []record {
	all := e[r.key()]
	n := 0
	for n < len(all) && all[n].Version < r.Version {
		n++
	}
	if n > 0 {
		e[r.key()] = all[n:]
	}
	return all[:n]
}

func (e lostEvents) rest() (records []record) {
	for k, left := range e {
		records = append(records, left...)
		delete(e, k)
	}
	return records
}
