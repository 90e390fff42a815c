package relay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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

// pass sends the rows and lost events of ill partitions again.
type pass struct {
	ill    []*finding
	topics []string
	from   int64        // the lowest position above which rows are sent
	above  int64        // rows up to here are read
	sent   map[*end]int // records of each ill partition that has taken all so far
	lost   lostEvents   // not yet in a page
}

func (p *pass) has(e *end) bool {
	_, has := p.sent[e]
	return has
}

// runPass returns again if the log is to be looked at immediately. A pass is a partition's last one if the partition's
// end was high enough when it began: then it lies above every offset that a consumer can have.
func (l *leader) runPass(ctx context.Context, ill []*finding) (again bool, err error) {
	p := &pass{ill: ill, from: *ill[0].stored.From, sent: map[*end]int{}}
	for _, f := range ill {
		p.from = min(p.from, *f.stored.From)
		p.topics = append(p.topics, f.topic)
		p.sent[f.end], f.isLast = 0, f.to >= f.need
	}
	p.above = p.from
	if p.lost, err = l.lostOf(ctx, p.topics, p.sent); err != nil {
		return false, err
	}
	for more := true; more && len(p.sent) > 0; {
		var page []record
		if page, more, err = l.readPass(ctx, p); err != nil {
			return false, err
		}
		if stopped, err := l.sendPass(ctx, p, page); stopped || err != nil {
			return false, err
		}
	}
	return l.endPass(ctx, p)
}

// readPass returns the next rows with their keys' lost events before them. The last page has all other lost events.
func (l *leader) readPass(ctx context.Context, p *pass) (page []record, more bool, err error) {
	var open *string
	if l.open != nil {
		open = &l.open.text
	}
	rows, more, err := l.read(ctx, passSQL, p.above, l.done.text, open, l.upTo, p.topics)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		p.above = r.Position
		end := l.ends.place(&r)
		if p.has(end) && r.Position > *end.stored.From {
			page = append(page, p.lost.before(&r)...)
			r.resent = true
			page = append(page, r)
		}
	}
	if !more {
		for _, left := range p.lost {
			page = append(page, left...)
		}
	}
	return page, more, nil
}

func (l *leader) sendPass(ctx context.Context, p *pass, page []record) (stopped bool, err error) {
	for {
		page = slices.DeleteFunc(page, func(r record) bool { return !p.has(r.end) })
		if len(page) == 0 {
			return false, nil
		}
		now, err := l.poll(ctx)
		if now.paused || err != nil || ctx.Err() != nil {
			return true, cmp.Or(err, ctx.Err())
		}
		if err := l.maintain(ctx); err != nil {
			return true, err
		}
		n := min(l.callLimit, len(page))
		part := slices.Clone(page[:n]) // the page does not keep the payloads of lost events
		page = page[n:]
		parked, err := l.resend(ctx, p, part)
		if err != nil {
			return true, err
		}
		page = slices.DeleteFunc(page, func(r record) bool { return !r.lost && slices.Contains(parked, r.key()) })
	}
}

// holdLaterSQL holds the rows that a pass does not send because an earlier record of their key was refused.
const holdLaterSQL = `
insert into public.outbox_held (topic, key, position)
select o.topic, o.key, o.position from public.outbox o
where o.topic = $1 and o.key = $2 and o.version >= $3 and o.position > $4
    and not exists (select from public.outbox_discarded d where d.position = o.position)
on conflict (topic, key, position) do nothing`

// resend ends the pass of a partition that does not take a record now. The others go on.
func (l *leader) resend(ctx context.Context, p *pass, records []record) (parked []key, err error) {
	if err := l.loadLost(ctx, records); err != nil {
		return nil, err
	}
	results, err := l.transmit(ctx, records)
	if err != nil {
		return nil, err
	}
	l.note(records, results)
	l.metrics.resent.Add(float64(len(results) - countFailed(results)))
	for i, why := range results {
		if isTransient(why) {
			delete(p.sent, records[i].end)
		}
	}
	var settled settlement
	later := &pgx.Batch{}
	for i, why := range results {
		r := &records[i]
		if !p.has(r.end) {
			continue
		}
		p.sent[r.end]++
		if why != nil && r.lost {
			l.cfg.Log.Error("a lost event cannot be sent again", "event_id", r.ID, "topic", r.Topic, "error", why)
		}
		if isPermanent(why) {
			l.park(r, why, &settled)
			parked = append(parked, r.key())
			later.Queue(holdLaterSQL, r.Topic, r.Key, r.Version, p.from)
		}
	}
	if parked == nil {
		return nil, nil
	}
	settled.log(ctx, l.cfg.Log)
	queueParked(later, settled.parked)
	l.ends.changes++
	return parked, l.guarded(ctx, later)
}

func (l *leader) endPass(ctx context.Context, p *pass) (again bool, err error) {
	plan := l.ends.plan(nil)
	var healed []*finding
	records := 0
	for _, f := range p.ill {
		switch n := p.sent[f.end]; {
		case !p.has(f.end): // its next look begins another pass
		case n == 0:
			f.ready = true // a page comes first
		case f.isLast:
			plan[f.topicPartition] = storedEnd{End: f.known, Time: f.time, Expected: f.known}
			healed, records = append(healed, f), records+n
		default:
			again = true
		}
	}
	if len(healed) == 0 {
		return again, nil
	}
	if _, _, err := l.change(ctx, nil, setEnds, plan); err != nil {
		return false, fmt.Errorf("store the end of a heal: %w", err)
	}
	l.ends.apply(plan)
	for _, f := range healed {
		f.isReported = false
	}
	l.cfg.Log.Info("healed", "partitions", len(healed), "records", records)
	return true, nil
}

type lostEvents map[key][]record

const lostOfSQL = `
select event_id, topic, key, version from public.outbox_lost where topic = any ($1) order by topic, key, version`

// lostOf returns the lost events of ill partitions without their payloads.
func (l *leader) lostOf(ctx context.Context, topics []string, ill map[*end]int) (lostEvents, error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	found := lostEvents{}
	rows, _ := l.conn.Query(ctx, lostOfSQL, topics)
	r := record{lost: true, resent: true}
	_, err := pgx.ForEachRow(rows, []any{&r.ID, &r.Topic, &r.Key, &r.Version}, func() error {
		if _, isIll := ill[l.ends.place(&r)]; isIll {
			found[r.key()] = append(found[r.key()], r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list lost events: %w", err)
	}
	return found, nil
}

const loadLostSQL = `select payload, headers from public.outbox_lost where event_id = $1 and version = $2`

func (l *leader) loadLost(ctx context.Context, records []record) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	batch := &pgx.Batch{}
	for i := range records {
		r := &records[i]
		if !r.lost {
			continue
		}
		batch.Queue(loadLostSQL, r.ID, r.Version).QueryRow(func(row pgx.Row) error {
			m := message.NewMessageWithContext(event.WithOrigin(ctx, event.Origin{Topic: r.Topic}), r.ID, nil)
			if err := row.Scan(&m.Payload, &m.Metadata); err != nil {
				return err
			}
			m.Metadata[event.KeyMetadata] = r.Key
			e, position, err := readSent(m)
			r.Event, r.Position = e.Event, position
			return err
		})
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := l.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("read lost events: %w", err)
	}
	return nil
}

func (e lostEvents) before(r *record) []record {
	all := e[r.key()]
	n := 0
	for n < len(all) && all[n].Version < r.Version {
		n++
	}
	e[r.key()] = all[n:]
	return all[:n]
}
