package verify

import "slices"

// part is a topic-partition of the view: what of its log was read, and what that log no longer holds.
type part struct {
	topic     int16
	number    int32
	index     int32 // among those of the view
	oldest    int64 // the first offset that the log has
	from      int64 // the first one that was read
	cut       bool  // records lay before it
	firstAt   int64 // when the first record was written; without one: never
	ghosts    int64 // records below it must have rows: the end before the rows were read
	end       int64 // records were read up to here
	open      bool  // or less far: an open transaction lies before the end
	committed int64 // of a consumer: records below it must be in the inbox
	other     bool  // of a consumer: its offset is one of a topic that was deleted since
}

// producedView is what is known beside the facts when the outbox is compared with its topics.
type producedView struct {
	topics   []string
	parts    []part
	moved    bool  // an operator has spread keys over another number of partitions
	restored bool  // an operator has confirmed a restore of the database
	dropped  bool  // the outbox has dropped table partitions
	rowsFrom int64 // the time of the lowest row that it holds
	counts   []Produced
}

// compareProduced is V1, V2, V3 and the outbox's half of V5.
func compareProduced(v *producedView, rows []row, records []record, out *result) {
	slices.SortFunc(rows, byID)
	slices.SortFunc(records, recordsByID)
	var rowless []record
	for i, j := 0, 0; i < len(rows) || j < len(records); {
		var id uint64
		if id = ^uint64(0); i < len(rows) {
			id = rows[i].id
		}
		if j < len(records) {
			id = min(id, records[j].id)
		}
		these, _ := cut(rows[i:], id, func(r row) uint64 { return r.id })
		those, _ := cut(records[j:], id, func(r record) uint64 { return r.id })
		i, j = i+len(these), j+len(those)
		for k := range those {
			those[k].again, those[k].ours = k > 0, those[k].ours || len(these) > 0
		}
		switch {
		case len(these) == 0:
			rowless = append(rowless, those[0])
		case len(those) == 0:
			v.missing(these[0], out)
		default:
			v.same(these[0], those, out)
		}
		if len(these) > 1 && !these[0].wire {
			out.suspect("V5", suspect{Kind: Twice, Subject: v.topics[these[0].topic], ID: id, Key: these[0].key})
		}
	}
	slices.SortFunc(rows, byKey)
	for _, r := range rowless {
		v.ghost(r, rows, out)
	}
	v.versions(rows, out)
	slices.SortFunc(records, recordsByKey)
	v.order(records, out)
	v.count(rows, records)
}

// missing judges a row without a record.
func (v *producedView) missing(r row, out *result) {
	topic := v.topics[r.topic]
	if r.state != published {
		return
	}
	for i, p := range v.parts {
		if p.topic != r.topic || r.part >= 0 && int(r.part) != i && !v.moved {
			continue
		}
		switch {
		case p.open:
			out.cannot(topic, Open, 1)
			return
		case p.cut && r.at < p.firstAt+clocks:
			out.cannot(topic, TopicForgot, 1)
			return
		}
	}
	out.suspect("V1", suspect{Kind: Lost, Subject: topic, ID: r.id, Key: r.key, Version: r.version})
}

// same judges a row and its records.
func (v *producedView) same(r row, records []record, out *result) {
	topic := v.topics[r.topic]
	for _, rec := range records {
		if rec.content != r.content {
			out.suspect("V1", suspect{Kind: Altered, Subject: topic, ID: r.id, Key: r.key, Version: r.version})
			break
		}
	}
	if r.part >= 0 && !v.moved && slices.ContainsFunc(records, func(rec record) bool { return rec.part != r.part }) {
		out.suspect("V3", suspect{Kind: Misplaced, Subject: topic, ID: r.id, Key: r.key, Version: r.version})
	}
}

// ghost judges a record without a row. The rows are in the order of their keys' versions.
func (v *producedView) ghost(r record, rows []row, out *result) {
	p := v.parts[r.part]
	topic := v.topics[p.topic]
	if !r.ours || r.old || r.offset >= p.ghosts {
		return
	}
	i, held := slices.BinarySearchFunc(rows, row{key: r.key, version: r.version}, byKey)
	earlier := i > 0 && rows[i-1].key == r.key // positions ascend with versions, so its row would be kept, too
	switch {
	case held: // its version belongs to another event
	case v.restored:
		out.cannot(topic, Restored, 1)
		return
	case v.dropped && !earlier && r.at < v.rowsFrom+clocks:
		out.cannot(topic, OutboxForgot, 1)
		return
	}
	out.suspect("V2", suspect{Kind: Ghost, Subject: topic, ID: r.id, Key: r.key, Version: r.version})
}

// versions looks for holes and twins in the versions of each key.
func (v *producedView) versions(rows []row, out *result) {
	for i, r := range rows {
		if i == 0 || rows[i-1].key != r.key || r.wire {
			continue
		}
		s := suspect{Subject: v.topics[r.topic], Key: r.key, Version: r.version}
		switch before := rows[i-1].version; {
		case before == r.version && rows[i-1].id != r.id:
			s.Kind = Twice
			out.suspect("V5", s)
		case r.version > before+1 && v.restored:
			out.cannot(s.Subject, Restored, r.version-before-1)
		case r.version > before+1:
			s.Kind, s.Version = Gap, before+1
			out.suspect("V3", s)
		}
	}
}

// order looks at the first records of each event: those of a key ascend. Where the beginning of a log is gone, the
// first that is there may be a repetition.
func (v *producedView) order(records []record, out *result) {
	var key uint64
	var at int32
	var highest int64
	for _, r := range records {
		if r.again || r.wire || !r.ours || r.old || r.version == 0 {
			continue
		}
		if r.key != key || r.part != at {
			key, at, highest = r.key, r.part, 0
		}
		if r.version > highest {
			highest = r.version
			continue
		}
		topic := v.topics[v.parts[r.part].topic]
		if v.parts[r.part].cut {
			out.cannot(topic, TopicForgot, 1)
			continue
		}
		out.suspect("V3", suspect{Kind: Reordered, Subject: topic, ID: r.id, Key: r.key, Version: r.version})
	}
}

func (v *producedView) count(rows []row, records []record) {
	for _, r := range rows {
		c := &v.counts[r.topic]
		switch r.state {
		case published:
			c.Published++
		case waiting:
			c.Waiting++
		case held:
			c.Held++
		case discarded:
			c.Discarded++
		}
	}
	for _, r := range records {
		c := &v.counts[v.parts[r.part].topic]
		switch {
		case r.old:
		case !r.ours:
			c.Foreign++
		case r.again:
			c.Again++
		default:
			c.Records++
		}
	}
}
