package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
)

type produced struct {
	comparison
	counts   *Produced
	dropped  []positions // of the table partitions that the outbox has dropped
	rowsFrom int64       // the time of the lowest row that it has
}

type positions struct{ first, last int64 }

func (l *look) compareOutbox(ctx context.Context, topic string, counts *Produced) error {
	counts.Topic = topic
	p := &produced{comparison: comparison{look: l, subject: topic, topic: topic}, counts: counts}
	err := inOrder(ctx, p.readEnds, p.readOutbox, p.readLost, p.readTopic, p.readHorizon)
	if err == nil {
		group(p.facts, byID, p.judgeEvent)
		group(p.facts, byKey, p.judgeKey)
	}
	return err
}

const selectRows = `
select o.position, o.event_id::text, o.event_type, o.source, o.key, o.version, coalesce(o.data_schema, ''),
    o.occurred_at, o.headers, o.payload,
    ` + relay.State + `
from public.outbox o cross join public.outbox_cursor c
where o.position > $1 and o.topic = $2 and o.occurred_at >= $3
order by o.position limit $4`

func (p *produced) readOutbox(ctx context.Context) error {
	var position int64
	var e event.Event
	var state string
	args := func() []any { return []any{position, p.topic, p.Since} }
	scan := []any{
		&position, &e.ID, &e.Type, &e.Source, &e.Key, &e.Version, &e.DataSchema, &e.Time, &e.Extensions, &e.Data, &state,
	}
	return p.readPages(ctx, "outbox", selectRows, args, scan, func() { p.addRow(e, position, state[0]) })
}

const selectLost = `select event_id, payload, headers from public.outbox_lost where topic = $1`

// Lost events count as rows that are published, though retention never drops them.
func (p *produced) readLost(ctx context.Context) error {
	var id string
	var payload []byte
	var headers map[string]string
	scan := []any{&id, &payload, &headers}
	return p.readRows(ctx, "lost events", selectLost, []any{p.topic}, scan, func() error {
		m := message.NewMessage(id, payload)
		m.Metadata, headers = headers, nil
		e, err := event.FromMessage(m)
		if err != nil {
			return fmt.Errorf("event %s: %w", id, err)
		}
		if !e.Time.Before(p.Since) {
			p.addRow(e, 0, lost)
		}
		return nil
	})
}

func (p *produced) addRow(e event.Event, position int64, state byte) {
	if p.isForeignCopy(e) {
		return
	}
	p.add(fact{
		id: e.ID, key: e.Key, eventType: unique.Make(e.Type).Value(), content: contentOf(e, e.Key), version: e.Version,
		position: position, at: addedAt(e.ID, e.Time), state: state,
	})
}

func (p *produced) readTopic(ctx context.Context) error {
	return p.readRecords(ctx, func(r fact, e event.Event, m *message.Message, _ error) {
		if p.isForeignCopy(e) {
			return
		}
		e.ID = r.id
		r.position, _ = strconv.ParseInt(m.Metadata[event.HeaderPosition], 10, 64)
		r.content, r.isOurs = contentOf(e, m.Metadata[event.KeyMetadata]), e.Source == p.Source
		p.add(r)
	})
}

// An earlier release wrote such a copy of a dead letter: it is not an event.
func (p *produced) isForeignCopy(e event.Event) bool {
	return strings.HasPrefix(p.topic, event.CopyPrefix) && e.Type != deadletter.CopyType
}

const selectRowsFrom = `
select coalesce((select o.event_id::text from public.outbox o order by o.position limit 1), ''),
    coalesce((select o.occurred_at from public.outbox o order by o.position limit 1), clock_timestamp())`

// A table partition with rows of a parked key is kept while later ones are dropped.
const selectDropped = `
select dropped, lower - 1
from (select lag(upper, 1, 1::bigint) over (order by lower) as dropped, lower from (` + relay.Partitions + `) p) p
where dropped < lower`

// It runs after the rows: a table partition that is dropped between the two must count as dropped.
func (p *produced) readHorizon(ctx context.Context) error {
	var id string
	var at time.Time
	if err := p.db.QueryRow(ctx, selectRowsFrom).Scan(&id, &at); err != nil {
		return fmt.Errorf("read outbox horizon: %w", err)
	}
	p.rowsFrom = addedAt(id, at)
	var gone positions
	return p.readRows(ctx, "dropped table partitions", selectDropped, nil, []any{&gone.first, &gone.last}, func() error {
		p.dropped = append(p.dropped, gone)
		return nil
	})
}

// hasDropped reports whether the outbox has dropped a row between two positions.
func (p *produced) hasDropped(from, to int64) bool {
	return slices.ContainsFunc(p.dropped, func(gone positions) bool { return from <= gone.last && gone.first <= to })
}

// A published row and a lost event must have their records.
const published, waiting, held, discarded, lost = 'p', 'w', 'h', 'd', 'l'

// judgeEvent is V1 and V2, and V3 and V5 for one event. A caller may repeat an event that the database has lost, with
// its id: it gets a later version, and records of its own.
func (p *produced) judgeEvent(rows, records []fact) {
	if len(rows) > 1 && rows[0].state == lost && rows[0].version < rows[1].version {
		slices.SortStableFunc(records, func(a, b fact) int { return cmp.Compare(a.version, b.version) })
		n := countWhile(records, func(r fact) bool { return r.version <= rows[0].version })
		p.judgeEvent(rows[:1], records[:n])
		rows, records = rows[1:], records[n:]
	}
	for i := range records {
		records[i].isRepeated, records[i].isOurs = i > 0, records[i].isOurs || len(rows) > 0
	}
	p.count(rows, records)
	switch {
	case len(rows) == 0:
		if r := records[0]; r.isOurs && !r.isOld && r.offset < p.parts[r.part].firstEnd {
			p.find("V2", Ghost, r, p.whyNoRow(r))
		}
	case len(records) == 0:
		if r := rows[0]; r.state == published || r.state == lost {
			p.find("V1", Lost, r, p.whyNoRecord(r))
		}
	default:
		p.judgeSame(rows[0], records)
	}
	if len(rows) > 1 {
		p.find("V5", Twice, fact{id: rows[0].id, key: rows[0].key}, "")
	}
}

func (p *produced) count(rows, records []fact) {
	of := map[byte]*int64{
		published: &p.counts.Published, lost: &p.counts.Published, waiting: &p.counts.Waiting, held: &p.counts.Held,
		discarded: &p.counts.Discarded,
	}
	for _, r := range rows {
		*of[r.state]++
	}
	for _, r := range records {
		switch {
		case r.isOld:
		case !r.isOurs:
			p.counts.Foreign++
		case r.isRepeated:
			p.counts.Again++
		default:
			p.counts.Records++
		}
	}
}

func (p *produced) whyNoRow(r fact) Reason {
	isDropped := p.hasDropped(r.position, r.position)
	if r.position == 0 {
		isDropped = len(p.dropped) > 0 && r.at < p.rowsFrom+clocks
	}
	if isDropped {
		return OutboxForgot
	}
	return ""
}

func (p *produced) whyNoRecord(r fact) Reason {
	if len(p.parts) == 0 && !slices.Contains(p.Topics, p.topic) {
		return TopicForgot
	}
	for i, part := range p.parts {
		expired := part.firstAt + clocks
		if part.firstAt == never { // it may have had what is older than the log of the key's own partition
			own := kafka.PartitionOf(r.key, int32(len(p.parts)))
			expired = p.parts[own].firstAt
		}
		switch {
		case !p.mayHave(r.key, int32(i)):
		case part.isOpen:
			return Open
		case part.isCut() && r.at < expired:
			return TopicForgot
		}
	}
	return ""
}

func (p *produced) judgeSame(r fact, records []fact) {
	if slices.ContainsFunc(records, func(record fact) bool { return record.content != r.content }) {
		p.find("V1", Altered, r, "")
	}
	place := kafka.PartitionOf(r.key, int32(len(p.parts)))
	i := slices.IndexFunc(records, func(record fact) bool { return record.part != place })
	switch {
	case i < 0:
	case p.mayHave(r.key, records[i].part):
		p.find("V3", Misplaced, r, FewerPartitions)
	default:
		p.find("V3", Misplaced, r, "")
	}
}

// judgeKey is V3 and V5 for a key.
func (p *produced) judgeKey(rows, records []fact) {
	for i := 1; i < len(rows); i++ {
		switch before, r := rows[i-1], rows[i]; {
		case before.version == r.version && before.id != r.id:
			p.find("V5", Twice, fact{key: r.key, version: r.version}, "")
		case p.hasDropped(before.position, r.position): // the rows between them may be dropped
		case r.version > before.version+1:
			p.find("V3", Gap, fact{key: r.key, version: before.version + 1}, "")
		}
	}
	for len(records) > 0 {
		n := countWhile(records, func(r fact) bool { return r.part == records[0].part })
		p.judgeOrder(records[:n])
		records = records[n:]
	}
}

// judgeOrder finds events that first come after a higher version of their key, unless all versions come in order when
// repetitions count: after a loss the log may have a later event, and then all of them again.
func (p *produced) judgeOrder(records []fact) {
	records = slices.DeleteFunc(records, func(r fact) bool { return !r.isOurs || r.isOld || r.version == 0 })
	var missing []int64
	for _, r := range records {
		missing = append(missing, r.version)
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	var last int64
	var late []fact
	for _, r := range records {
		if len(missing) > 0 && missing[0] == r.version {
			missing = missing[1:]
		}
		if r.isRepeated {
			continue
		}
		if r.version < last {
			late = append(late, r)
		}
		last = max(last, r.version)
	}
	if len(missing) == 0 {
		return
	}
	for _, r := range late {
		var unless Reason
		if p.parts[r.part].isCut() {
			unless = TopicForgot
		}
		p.find("V3", Reordered, r, unless)
	}
}
