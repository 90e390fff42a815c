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

// pass sends the rows and lost events of ill partitions again.
type pass struct {
	*leader
	ill    []*finding
	topics []string
	from   int64            // the lowest position above which rows are sent
	above  int64            // rows up to here are read
	sent   map[*end]int     // records of each ill partition that has taken all so far
	lost   map[key][]record // lost events that are not yet in a page, without their payloads
}

func (p *pass) has(e *end) bool {
	_, has := p.sent[e]
	return has
}

// runPass returns again if the log is to be looked at immediately. A pass is a partition's last one if the partition's
// end was high enough when it began: then it lies above every offset that a consumer can have.
func (l *leader) runPass(ctx context.Context, ill []*finding) (again bool, err error) {
	p := &pass{leader: l, ill: ill, from: *ill[0].stored.From, sent: map[*end]int{}, lost: map[key][]record{}}
	for _, f := range ill {
		p.from = min(p.from, *f.stored.From)
		p.topics = append(p.topics, f.topic)
		p.sent[f.end], f.isLast = 0, f.to >= f.need
	}
	p.above = p.from
	if err := p.listLost(ctx); err != nil {
		return false, err
	}
	for more := true; more && len(p.sent) > 0; {
		var page []record
		if page, more, err = p.readPage(ctx); err != nil {
			return false, err
		}
		if stopped, err := p.sendPage(ctx, page); stopped || err != nil {
			return false, err
		}
	}
	return p.endPass(ctx)
}

const listLostSQL = `
select event_id, topic, key, version from public.outbox_lost where topic = any ($1) order by topic, key, version`

func (p *pass) listLost(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := p.conn.Query(ctx, listLostSQL, p.topics)
	r := record{lost: true, resent: true}
	_, err := pgx.ForEachRow(rows, []any{&r.ID, &r.Topic, &r.Key, &r.Version}, func() error {
		if p.has(p.ends.place(&r)) {
			p.lost[r.key()] = append(p.lost[r.key()], r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list lost events: %w", err)
	}
	return nil
}

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

// readPage returns the next rows with their keys' lost events before them. The last page has all other lost events.
func (p *pass) readPage(ctx context.Context) (page []record, more bool, err error) {
	var open *string
	if p.open != nil {
		open = &p.open.text
	}
	rows, more, err := p.read(ctx, passSQL, p.above, p.done.text, open, p.upTo, p.topics)
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		p.above = r.Position
		end := p.ends.place(&r)
		if !p.has(end) || r.Position <= *end.stored.From {
			continue
		}
		lost, k := p.lost[r.key()], r.key()
		for len(lost) > 0 && lost[0].Version < r.Version {
			page, lost = append(page, lost[0]), lost[1:]
		}
		p.lost[k] = lost
		r.resent = true
		page = append(page, r)
	}
	if !more {
		for _, left := range p.lost {
			page = append(page, left...)
		}
	}
	return page, more, nil
}

func (p *pass) sendPage(ctx context.Context, page []record) (stopped bool, err error) {
	for {
		page = slices.DeleteFunc(page, func(r record) bool { return !p.has(r.end) })
		if len(page) == 0 {
			return false, nil
		}
		now, err := p.poll(ctx)
		if now.paused || err != nil || ctx.Err() != nil {
			return true, cmp.Or(err, ctx.Err())
		}
		if err := p.maintain(ctx); err != nil {
			return true, err
		}
		n := min(p.callLimit, len(page))
		part := slices.Clone(page[:n]) // the page does not keep the payloads of lost events
		page = page[n:]
		parked, err := p.sendAgain(ctx, part)
		if err != nil {
			return true, err
		}
		page = slices.DeleteFunc(page, func(r record) bool { return !r.lost && slices.Contains(parked, r.key()) })
	}
}

// holdLaterSQL holds the rows that a pass does not send because an earlier record of their key was refused.
const holdLaterSQL = `
insert into public.outbox_held (topic, key, position)
select o.topic, o.key, o.position
from public.outbox o
join unnest($1::text[], $2::text[], $3::bigint[]) as r (topic, key, version)
    on o.topic = r.topic and o.key = r.key and o.version >= r.version
where o.position > $4 and not exists (select from public.outbox_discarded d where d.position = o.position)
on conflict (topic, key, position) do nothing`

// sendAgain ends the pass of a partition that does not take a record now. The others go on.
func (p *pass) sendAgain(ctx context.Context, records []record) (parked []key, err error) {
	if err := p.loadLost(ctx, records); err != nil {
		return nil, err
	}
	results, failed, err := p.send(ctx, records)
	if err != nil {
		return nil, err
	}
	p.metrics.resent.Add(float64(len(results) - failed))
	for i, why := range results {
		if isTransient(why) {
			delete(p.sent, records[i].end)
		}
	}
	var settled settlement
	var topics, keys []string
	var versions []int64
	for i, why := range results {
		r := &records[i]
		if !p.has(r.end) {
			continue
		}
		p.sent[r.end]++
		if why != nil && r.lost {
			p.cfg.Log.Error("a lost event cannot be sent again", "event_id", r.ID, "topic", r.Topic, "error", why)
		}
		if isPermanent(why) {
			p.park(r, why, &settled)
			parked = append(parked, r.key())
			topics, keys, versions = append(topics, r.Topic), append(keys, r.Key), append(versions, r.Version)
		}
	}
	if parked == nil {
		return nil, nil
	}
	settled.log(ctx, p.cfg.Log)
	p.ends.changes++
	batch := &pgx.Batch{}
	batch.Queue(holdLaterSQL, topics, keys, versions, p.from)
	queueParked(batch, settled.parked)
	return parked, p.guarded(ctx, batch, nil)
}

const loadLostSQL = `select payload, headers from public.outbox_lost where event_id = $1 and version = $2`

func (p *pass) loadLost(ctx context.Context, records []record) error {
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
			found, err := readRecord(m)
			r.Event, r.Position = found.Event, found.position
			return err
		})
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := p.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("read lost events: %w", err)
	}
	return nil
}

func (p *pass) endPass(ctx context.Context) (again bool, err error) {
	ends := p.ends.planEnds(nil)
	var healed []*finding
	records := 0
	for _, f := range p.ill {
		switch n := p.sent[f.end]; {
		case !p.has(f.end): // its next look begins another pass
		case n == 0:
			f.state = endReady // a page comes first
		case f.isLast:
			ends[f.topicPartition] = storedEnd{End: f.known, Time: f.time, Expected: f.known}
			healed, records = append(healed, f), records+n
		default:
			again = true
		}
	}
	if len(healed) == 0 {
		return again, nil
	}
	if err := p.guarded(ctx, nil, ends); err != nil {
		return false, fmt.Errorf("store the end of a heal: %w", err)
	}
	for _, f := range healed {
		f.isReported = false
	}
	p.cfg.Log.Info("healed", "partitions", len(healed), "records", records)
	return true, nil
}
