package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
)

// lookAtProduced compares the outbox with its topics.
func (l *look) lookAtProduced(ctx context.Context) error {
	size, err := outboxSize(ctx, l.cfg.DB)
	if err != nil {
		return err
	}
	l.passes(size)
	counts := make([]Produced, len(l.cfg.Topics))
	for i, topic := range l.cfg.Topics {
		counts[i].Topic = topic
	}
	for l.this = 0; l.this < l.of; l.this++ {
		v := &producedView{topics: l.cfg.Topics, counts: counts}
		rows, records, err := l.readProduced(ctx, v)
		if err != nil {
			return err
		}
		compareProduced(v, rows, records, &l.result)
	}
	l.produced = counts
	return nil
}

func (l *look) readProduced(ctx context.Context, v *producedView) (rows []row, records []record, err error) {
	base := make([]int, len(v.topics)+1) // of each topic's partitions among all
	for i, topic := range v.topics {
		parts, err := l.partsOf(ctx, topic)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range parts {
			p.topic, p.index = int16(i), int32(len(v.parts))
			v.parts = append(v.parts, p)
		}
		base[i+1] = len(v.parts)
	}
	if rows, err = l.readOutbox(ctx, v, base); err != nil {
		return nil, nil, err
	}
	for i, topic := range v.topics {
		copies := strings.HasPrefix(topic, deadletter.CopyPrefix)
		err := l.readParts(ctx, topic, v.parts[base[i]:base[i+1]], func(p *part, m *message.Message, o cloudevent.Origin) {
			r := l.producedEvent(topic, m, o)
			if copies {
				r = l.producedCopy(m, o)
			}
			if r.part = p.index; l.takes(r.id, r.key) {
				l.label(r.id, m.UUID)
				l.label(r.key, m.Metadata[cloudevent.KeyMetadata])
				records = append(records, r)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return rows, records, v.readHorizon(ctx, l.cfg.DB)
}

func (l *look) readOutbox(ctx context.Context, v *producedView, base []int) (rows []row, err error) {
	spread, err := readSpread(ctx, l.cfg.DB)
	if err != nil {
		return nil, err
	}
	topics := map[string]int16{}
	for i, topic := range v.topics {
		topics[topic] = int16(i)
	}
	var placing error
	err = readRows(ctx, l.cfg.DB, l.cfg.Since, func(or *outboxRow) {
		l.step()
		e := &or.event
		topic, known := topics[e.Topic]
		if !known {
			if l.this == 0 && or.state == published {
				l.cannot(e.Topic, NoTopic, 1)
			}
			return
		}
		r := outboxFact(or, topic)
		if !l.takes(r.id, r.key) {
			return
		}
		l.label(r.id, e.ID)
		l.label(r.key, e.Key)
		partitions := int32(base[topic+1] - base[topic])
		if n := spread[e.Topic]; n > 0 {
			partitions = min(n, partitions)
		}
		if !r.wire && partitions > 0 {
			place, err := l.cfg.Log.Place(e.Topic, e.Key, partitions)
			r.part, placing = int32(base[topic])+place, err
		}
		rows = append(rows, r)
	})
	if err == nil {
		err = placing
	}
	return rows, err
}

func outboxFact(or *outboxRow, topic int16) row {
	e := &or.event
	r := row{
		key: hashOf(e.Topic, e.Key), version: e.Version, topic: topic, state: or.state, part: -1, at: earliest(e.ID, e.Time),
	}
	if wire, is := cloudevent.ParseWire(e.Extensions[cloudevent.RecordMetadata]); is {
		r.content, r.wire = wireOf(wire, e.Data), true
		r.id, r.key = r.content, r.content // of its record nothing else is known
		return r
	}
	r.id, r.content = hashOf(e.Topic, e.ID), contentOf(*e)
	return r
}

func (l *look) producedCopy(m *message.Message, o cloudevent.Origin) record {
	content := wireOf(cloudevent.Wire{Key: o.Key, Headers: o.Headers}, m.Payload)
	return record{
		id: content, content: content, key: content, offset: o.Offset, ours: true, wire: true, old: l.old(o.Time),
	}
}

func (l *look) producedEvent(topic string, m *message.Message, o cloudevent.Origin) record {
	e, _ := cloudevent.FromMessage(m)
	r := record{
		id: hashOf(topic, idOf(e, o)), content: contentOf(e), key: hashOf(topic, e.Key), version: e.Version,
		offset: o.Offset, ours: e.Source == l.cfg.Source, old: l.old(e.Time), at: earliest(e.ID, e.Time, o.Time),
	}
	if key := m.Metadata[cloudevent.KeyMetadata]; key != e.Key {
		r.content = hashOf(key) // the record's key is not its event's
	}
	return r
}

// idOf is the id of an event, or of a record that has none where it lies.
func idOf(e cloudevent.Event, o cloudevent.Origin) string {
	if cloudevent.ValidID(e.ID) != nil {
		return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return e.ID
}
