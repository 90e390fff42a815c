package verify

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// lookAtConsumed compares a consumer's topic with its inbox.
func (l *look) lookAtConsumed(ctx context.Context, c Consumer) error {
	oldest, newest, err := l.cfg.Log.Ends(ctx, c.Topic)
	if err != nil {
		return fmt.Errorf("ask for the ends of %s: %w", c.Topic, err)
	}
	var size int64
	for i := range newest {
		size += newest[i] - oldest[i]
	}
	l.passes(size)
	count := Consumed{Consumer: c.Name, Topic: c.Topic}
	for l.this = 0; l.this < l.of; l.this++ {
		if err := l.passConsumed(ctx, c, &count); err != nil {
			return err
		}
	}
	l.consumed = append(l.consumed, count)
	return nil
}

func (l *look) passConsumed(ctx context.Context, c Consumer, count *Consumed) error {
	v := &consumedView{
		consumer: c.Name, versioned: c.Versioned, letters: map[place]bool{}, lettered: map[[2]uint64]bool{},
		ids: map[uint64]bool{}, conflicts: map[uint64]bool{}, edited: map[uint64]bool{}, marks: map[uint64]int64{},
		spans: map[uint64]span{}, counts: l.takesKey,
	}
	if l.cfg.Since != nil {
		v.since = l.cfg.Since.Unix()
	}
	rows, dead, err := l.readInbox(ctx, c, v)
	if err != nil {
		return err
	}
	var records []record
	err = l.readParts(ctx, c.Topic, v.parts, func(p *part, m *message.Message, o cloudevent.Origin) {
		r := l.consumedRecord(c, m, o)
		r.part = p.index
		v.behind(r, &l.result)
		switch {
		case l.this > 0:
		case r.offset >= p.committed:
			count.Pending++
		case !r.handled:
			count.Ignored++
		}
		if l.takesID(r.id) {
			l.label(r.id, m.UUID)
			records = append(records, r)
		}
		l.label(r.key, m.Metadata[cloudevent.KeyMetadata])
	})
	if err != nil {
		return err
	}
	handled, again := compareConsumed(v, records, rows, &l.result)
	count.Handled, count.Again, count.Dead = count.Handled+handled, count.Again+again, dead
	v.ahead(&l.result)
	return nil
}

// readCommitted reads the committed offsets, and only then the ends: an offset beyond them is not this topic's.
func (l *look) readCommitted(ctx context.Context, c Consumer, v *consumedView) error {
	committed, otherTopic, err := l.cfg.Log.Committed(ctx, c.Group, c.Topic)
	if err != nil {
		return fmt.Errorf("ask for offsets of %s: %w", c.Group, err)
	}
	if v.parts, err = l.partsOf(ctx, c.Topic); err != nil {
		return err
	}
	for i := range v.parts {
		p := &v.parts[i]
		if i < len(committed) {
			p.committed, p.other = max(committed[i], 0), otherTopic[i] || committed[i] > p.end
		}
		if p.other {
			p.committed = 0
			if l.this == 0 {
				l.cannot(c.Name, OtherTopic, p.end-p.from)
			}
		}
	}
	return nil
}

// readInbox reads the committed offsets and then what the inbox has.
func (l *look) readInbox(ctx context.Context, c Consumer, v *consumedView) (rows []remembered, dead int64, err error) {
	if err = l.readCommitted(ctx, c, v); err != nil {
		return nil, 0, err
	}
	err = readRemembered(ctx, l.cfg.DB, c.Name, func(ir *inboxRow) {
		l.step()
		f := ir.fact
		f.id = hashOf(c.Topic, ir.id)
		if ir.topic != c.Topic {
			f.part = -1
		}
		if f.conflict {
			v.conflicts[f.id] = true
		}
		if l.takesID(f.id) {
			l.label(f.id, ir.id)
			rows = append(rows, f)
		}
	})
	if err == nil {
		dead, err = v.readLetters(ctx, l.cfg.DB, c.Topic)
	}
	if err == nil && c.Versioned {
		err = v.readMarks(ctx, l.cfg.DB, func(key string, version int64) {
			if hash := hashOf(c.Topic, key); l.takesKey(hash) {
				l.label(hash, key)
				v.marks[hash] = version
			}
		})
	}
	if err == nil {
		err = v.readHorizon(ctx, l.cfg.DB)
	}
	return rows, dead, err
}

func (l *look) consumedRecord(c Consumer, m *message.Message, o cloudevent.Origin) record {
	e, err := cloudevent.FromMessage(m)
	return record{
		id: hashOf(c.Topic, idOf(e, o)), content: payloadHash(m.Payload), key: hashOf(c.Topic, e.Key), version: e.Version,
		offset: o.Offset, at: earliest(e.ID, o.Time), handled: err != nil || c.Accepts(e.Type),
		old: err == nil && l.old(e.Time),
	}
}
