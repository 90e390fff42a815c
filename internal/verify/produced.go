package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/outbox/relay"
)

// produced is what is known when the outbox is compared with one of its topics.
type produced struct {
	comparison
	outboxHorizon
	rows    []fact
	records []fact
	counts  *Produced
}

// outboxHorizon is what an outbox no longer knows.
type outboxHorizon struct {
	dropped  bool  // the outbox has dropped table partitions
	rowsFrom int64 // the time of the lowest row that it holds
}

// lookAtProduced compares the outbox with its topics.
func (l *look) lookAtProduced(ctx context.Context) error {
	l.verdict.Produced = make([]Produced, len(l.cfg.Topics))
	for i, topic := range l.cfg.Topics {
		l.verdict.Produced[i].Topic = topic
	}
	return l.passes(l.rows, func() error { return l.passProduced(ctx) })
}

func (l *look) passProduced(ctx context.Context) error {
	all := map[string]*produced{}
	for i, topic := range l.cfg.Topics {
		parts, err := l.partsOf(ctx, topic)
		if err != nil {
			return err
		}
		all[topic] = &produced{comparison: comparison{l, topic, parts}, counts: &l.verdict.Produced[i]}
	}
	if err := l.readOutbox(ctx, all); err != nil {
		return err
	}
	if err := l.readLost(ctx, all); err != nil {
		return err
	}
	for _, topic := range l.cfg.Topics {
		if err := all[topic].readTopic(ctx); err != nil {
			return err
		}
	}
	horizon, err := readOutboxHorizon(ctx, l.cfg.DB)
	if err != nil {
		return err
	}
	for _, topic := range l.cfg.Topics {
		all[topic].outboxHorizon = horizon
		all[topic].compare()
	}
	return nil
}

// selectRows reads each row with its state, in one statement: it is published if the cursor has passed it and it is
// neither held nor discarded.
const selectRows = `
select o.position, o.event_id::text, o.event_type, o.source, o.topic, o.key, o.version, coalesce(o.data_schema, ''),
    o.occurred_at, o.headers, o.payload,
    ` + relay.State + `
from public.outbox o cross join public.outbox_cursor c
where o.position > $1 and ($2::timestamptz is null or o.occurred_at >= $2)
order by o.position limit $3`

// readOutbox reads the rows of the outbox, in the order of their positions.
func (l *look) readOutbox(ctx context.Context, all map[string]*produced) error {
	var position int64
	var e event.Event
	var state string
	args := func() []any { return []any{position, l.cfg.Since} }
	scan := []any{
		&position, &e.ID, &e.Type, &e.Source, &e.Topic, &e.Key, &e.Version, &e.DataSchema, &e.Time, &e.Extensions, &e.Data,
		&state,
	}
	return pages(ctx, l.cfg.DB, "outbox", selectRows, args, scan, func() (err error) {
		l.step()
		p := all[e.Topic]
		if isEarlierCopy(e.Topic, e.Type) {
			return nil
		}
		if p == nil {
			if l.this == 0 && state == "published" {
				l.cannot(e.Topic, NoTopic, 1)
			}
			return nil
		}
		r := outboxFact(e)
		if !l.takesAll(r) {
			return nil
		}
		l.label(r.id, e.ID)
		l.label(r.key, e.Key)
		r.state = state[0]
		if len(p.parts) > 0 {
			r.part, err = l.cfg.Log.Place(e.Topic, e.Key, int32(len(p.parts)))
		}
		p.rows = append(p.rows, r)
		return err
	})
}

const selectLost = `
select event_id, version, topic, payload, headers from public.outbox_lost
where (event_id, version) > ($1, $2) order by event_id, version limit $3`

// readLost reads the events that the database lost when it went back. They count as rows that are published.
func (l *look) readLost(ctx context.Context, all map[string]*produced) error {
	var id, topic string
	var version int64
	var payload []byte
	var headers map[string]string
	args := func() []any { return []any{id, version} }
	scan := []any{&id, &version, &topic, &payload, &headers}
	return pages(ctx, l.cfg.DB, "lost events", selectLost, args, scan, func() (err error) {
		l.step()
		m := message.NewMessage(id, payload)
		m.Metadata, headers = headers, nil
		e, err := event.FromMessage(m)
		if err != nil {
			return fmt.Errorf("read lost event %s: %w", id, err)
		}
		e.Topic = topic
		r := outboxFact(e)
		p := all[topic]
		if p == nil || !l.takesAll(r) {
			return nil
		}
		l.label(r.id, e.ID)
		l.label(r.key, e.Key)
		r.state = published
		if len(p.parts) > 0 {
			r.part, err = l.cfg.Log.Place(topic, e.Key, int32(len(p.parts)))
		}
		p.rows = append(p.rows, r)
		return err
	})
}

func outboxFact(e event.Event) fact {
	return fact{
		id: hashOf(e.Topic, e.ID), content: contentOf(e), key: hashOf(e.Topic, e.Key), version: e.Version, place: nowhere,
		at: earliest(e.ID, e.Time),
	}
}

// isEarlierCopy reports whether an earlier release wrote this copy of a dead letter: a record that is no event.
func isEarlierCopy(topic, eventType string) bool {
	return strings.HasPrefix(topic, deadletter.CopyPrefix) && eventType != deadletter.CopyType
}

// readTopic reads the records.
func (p *produced) readTopic(ctx context.Context) error {
	return p.readParts(ctx, p.subject, p.parts, func(m *message.Message, o event.Origin) {
		r := p.eventFact(m, o)
		r.place = place{o.Offset, o.Partition}
		if p.takesAll(r) {
			p.label(r.id, m.UUID)
			p.label(r.key, m.Metadata[event.KeyMetadata])
			p.records = append(p.records, r)
		}
	})
}

func (p *produced) eventFact(m *message.Message, o event.Origin) fact {
	e, _ := event.FromMessage(m)
	f := fact{
		id: hashOf(p.subject, idOf(e, o)), content: contentOf(e), key: hashOf(p.subject, e.Key), version: e.Version,
		ours: e.Source == p.cfg.Source && !isEarlierCopy(p.subject, e.Type), old: p.old(e.Time),
		at: earliest(e.ID, e.Time, o.Time), moved: p.hasMoved(e.Key, o.Partition),
	}
	if key := m.Metadata[event.KeyMetadata]; key != e.Key {
		f.content = hashOf(key) // the record's key is not its event's
	}
	return f
}

// hasMoved reports whether a partition is not the key's, and was if the topic had fewer partitions.
func (p *produced) hasMoved(key string, partition int32) bool {
	all := int32(len(p.parts))
	for n := all; n > partition; n-- {
		if place, err := p.cfg.Log.Place(p.subject, key, n); err == nil && place == partition {
			return n < all
		}
	}
	return false
}

// selectHorizon is asked after the rows: a table partition that is dropped between the two must count as dropped.
const selectHorizon = `
select coalesce((select min(lower) from (` + relay.Partitions + `) p), 1) > 1,
    coalesce((select o.event_id::text from public.outbox o order by o.position limit 1), ''),
    coalesce((select o.occurred_at from public.outbox o order by o.position limit 1), clock_timestamp())`

func readOutboxHorizon(ctx context.Context, db DB) (h outboxHorizon, err error) {
	var id string
	var at time.Time
	if err = db.QueryRow(ctx, selectHorizon).Scan(&h.dropped, &id, &at); err != nil {
		return h, fmt.Errorf("read outbox horizon: %w", err)
	}
	h.rowsFrom = earliest(id, at)
	return h, nil
}

// compare is V1, V2, V3 and the outbox's half of V5.
func (p *produced) compare() {
	var rowless []fact
	pairs(p.rows, p.records, func(rows, records []fact) {
		for i := range records {
			records[i].again, records[i].ours = i > 0, records[i].ours || len(rows) > 0
		}
		switch {
		case len(rows) == 0:
			rowless = append(rowless, records[0])
		case len(records) == 0:
			p.missing(rows[0])
		default:
			p.same(rows[0], records)
		}
		if len(rows) > 1 {
			p.suspect("V5", Twice, fact{id: rows[0].id, key: rows[0].key})
		}
	})
	slices.SortFunc(p.rows, byVersion)
	for _, r := range rowless {
		p.ghost(r)
	}
	p.versions()
	slices.SortFunc(p.records, byPlace)
	p.order()
	p.count()
}

// What became of a row; a published one must have its record.
const published, waiting, held, discarded = 'p', 'w', 'h', 'd'

// missing judges a row without a record.
func (p *produced) missing(r fact) {
	if r.state != published {
		return
	}
	for _, part := range p.parts { // all of them: the topic may have had fewer
		switch {
		case part.open:
			p.cannot(Open)
			return
		case part.cut && r.at < part.firstAt+clocks:
			p.cannot(TopicForgot)
			return
		}
	}
	p.suspect("V1", Lost, r)
}

// same judges a row and its records.
func (p *produced) same(r fact, records []fact) {
	if slices.ContainsFunc(records, func(record fact) bool { return record.content != r.content }) {
		p.suspect("V1", Altered, r)
	}
	for _, record := range records {
		switch {
		case r.part < 0 || record.part == r.part:
			continue
		case record.moved:
			p.cannot(FewerPartitions)
		default:
			p.suspect("V3", Misplaced, r)
		}
		return
	}
}

// ghost judges a record without a row. The rows are in the order of their keys' versions.
func (p *produced) ghost(r fact) {
	if !r.ours || r.old || r.offset >= p.parts[r.part].ghosts {
		return
	}
	i, held := slices.BinarySearchFunc(p.rows, r, byVersion)
	earlier := i > 0 && p.rows[i-1].key == r.key // positions ascend with versions, so its row would be kept, too
	switch {
	case held: // its version belongs to another event
	case p.dropped && !earlier && r.at < p.rowsFrom+clocks:
		p.cannot(OutboxForgot)
		return
	}
	p.suspect("V2", Ghost, r)
}

// versions looks for holes and twins in the versions of each key.
func (p *produced) versions() {
	for i, r := range p.rows {
		if i == 0 || p.rows[i-1].key != r.key {
			continue
		}
		switch before := p.rows[i-1]; {
		case before.version == r.version && before.id != r.id:
			p.suspect("V5", Twice, fact{key: r.key, version: r.version})
		case r.version > before.version+1:
			p.suspect("V3", Gap, fact{key: r.key, version: before.version + 1})
		}
	}
}

// order looks at the records of each key in a partition, which ascend. Where the beginning of a log is gone, the first
// that is there may be a repetition.
func (p *produced) order() {
	for records := p.records; len(records) > 0; {
		n := slices.IndexFunc(records, func(r fact) bool { return r.key != records[0].key || r.part != records[0].part })
		if n < 0 {
			n = len(records)
		}
		late := p.late(records[:n])
		if len(late) > 0 && !p.inOrder(records[:n]) {
			for _, r := range late {
				if p.parts[r.part].cut {
					p.cannot(TopicForgot)
				} else {
					p.suspect("V3", Reordered, r)
				}
			}
		}
		records = records[n:]
	}
}

func isOrdered(r fact) bool { return r.ours && !r.old && r.version != 0 }

// late are the first records of events that come behind a higher version of their key.
func (p *produced) late(records []fact) (late []fact) {
	var last int64
	for _, r := range records {
		if r.again || !isOrdered(r) {
			continue
		}
		if r.version < last {
			late = append(late, r)
		}
		last = max(last, r.version)
	}
	return late
}

// inOrder reports whether the versions of a key come one after the other when repetitions count. A log that lost
// records may have a later event before the relay sends the earlier ones again, and that one with them.
func (p *produced) inOrder(records []fact) bool {
	var versions []int64
	for _, r := range records {
		if isOrdered(r) {
			versions = append(versions, r.version)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	for _, r := range records {
		if len(versions) > 0 && isOrdered(r) && r.version == versions[0] {
			versions = versions[1:]
		}
	}
	return len(versions) == 0
}

func (p *produced) count() {
	states := map[byte]*int64{
		published: &p.counts.Published, waiting: &p.counts.Waiting, held: &p.counts.Held, discarded: &p.counts.Discarded,
	}
	for _, r := range p.rows {
		*states[r.state]++
	}
	for _, r := range p.records {
		switch {
		case r.old:
		case !r.ours:
			p.counts.Foreign++
		case r.again:
			p.counts.Again++
		default:
			p.counts.Records++
		}
	}
}
