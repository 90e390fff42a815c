package main

import "slices"

// addRefusals lets the broker refuse a row. The publisher then sends no later record of its key.
func (s *state) addRefusals(l *steps) {
	if s.left.refusals == 0 {
		return
	}
	for _, item := range s.relay.items[:s.relay.count] {
		r := item.record
		if isRow := r == s.rowRecord(r.position()); isRow && s.maySend(item) {
			n := *s
			n.left.refusals--
			n.refuse(r)
			l.addFault(n, "BROKER refuses %s", s.name(r))
		}
	}
}

func (s *state) refuse(r record) {
	for i := range s.relay.count {
		this := &s.relay.items[i]
		isKey := s.key[this.record.event()] == s.key[r.event()]
		this.refused = this.refused || isKey && !this.written && this.record.version() >= r.version()
	}
}

func (s *state) refusedItems() []item {
	return slices.DeleteFunc(slices.Clone(s.relay.items[:s.relay.count]), func(i item) bool { return !i.refused })
}

// holdPage holds the rows of parked keys that the cursor passes.
func (s *state) holdPage() (any bool) {
	for _, refused := range s.refusedItems() {
		s.db.parked[s.key[refused.record.event()]] = true
		s.db.held[refused.record.position()] = true
	}
	for i := s.db.cursor; i < s.relay.passed; i++ {
		s.db.held[i] = s.db.held[i] || s.isParked(i)
		any = any || s.db.held[i]
	}
	return any
}

func (s *state) isParked(position int8) bool { return s.db.parked[s.key[s.db.row[position].event]] }

// addBlindPage parks the keys of a page because the partition does not answer.
func (s *state) addBlindPage(l *steps) {
	if s.left.blinds == 0 || s.db.cursor == s.db.rows {
		return
	}
	n := *s
	n.left.blinds--
	end := min(s.db.rows, s.db.cursor+s.run.page)
	for i := s.db.cursor; i < end; i++ {
		n.db.parked[s.key[s.db.row[i].event]] = true
		n.db.held[i] = true
	}
	n.db.cursor, n.db.upTo = end, max(n.db.upTo, end)
	l.addFault(n, "PARTITION does not answer: keys are parked, cursor at %d", end)
}

// holdRefused parks the keys that a pass could not send, and holds their rows from the refused one on.
func (s *state) holdRefused(lowest int8) {
	for _, refused := range s.refusedItems() {
		r := refused.record
		s.db.parked[s.key[r.event()]] = true
		for i := lowest; i < s.db.rows; i++ {
			row := s.db.row[i]
			isLater := s.key[row.event] == s.key[r.event()] && row.version >= r.version()
			if row.event == r.event() || isLater && !s.run.omit.holdLater {
				s.db.held[i] = true
			}
		}
	}
}

// isBehindHeld reports whether a pass leaves a row out: its key has a held row here or below.
func (s *state) isBehindHeld(position int8) bool {
	if s.run.omit.skipLater {
		return s.db.held[position]
	}
	for i := range position + 1 {
		if s.db.held[i] && s.key[s.db.row[i].event] == s.key[s.db.row[position].event] {
			return true
		}
	}
	return false
}

func (s *state) waitsForHeld(event int8) bool {
	for i, row := range s.db.row[:s.db.rows] {
		if row.event == event {
			return s.isBehindHeld(int8(i))
		}
	}
	return false
}

func (s *state) addFlushes(l *steps) {
	for k := range s.run.keys {
		if !s.db.parked[k] {
			continue
		}
		n := *s
		records := s.heldRows(k)
		if len(records) == 0 {
			n.db.parked[k] = false
			l.add(n, "relay releases key %c", 'a'+k)
			continue
		}
		n.relay.mode, n.relay.unclean, n.relay.below = flush, false, false
		n.setItems(records[:min(len(records), int(s.run.page))])
		for p := range s.run.parts {
			n.expect(p)
		}
		n.storeEnds()
		l.add(n, "relay sends held rows%v", names{s, records})
	}
}

func (s *state) heldRows(k int8) (records []record) {
	for i, row := range s.db.row[:s.db.rows] {
		if s.db.held[i] && s.key[row.event] == k {
			records = append(records, s.rowRecord(int8(i)))
		}
	}
	return records
}

func (s *state) addFlushEnd(l *steps) {
	n := *s
	if !n.takeOffsets() {
		return
	}
	if n.relay.unclean {
		n.lookAfter(s)
		l.add(n, "held rows sent, not clean")
		return
	}
	n.release()
	l.add(n, "held rows sent")
}

// release makes a partition ill if lost events of the key have to follow. In an ill one the rows are sent again.
func (s *state) release() {
	s.relay.mode = idle
	for p := range s.run.parts {
		part, e := &s.relay.part[p], &s.db.ends[p]
		e.expected = part.known.end
		if e.isIll() {
			e.expected = max(part.need, part.known.end)
		}
		part.need = e.expected
	}
	s.storeEnds()
	for _, this := range s.relay.items[:s.relay.count] {
		if this.written {
			s.releaseRow(this.record)
		}
	}
	s.setItems(nil)
	if s.relay.mode == store {
		s.askEnds()
	}
}

func (s *state) releaseRow(r record) {
	position, e := r.position(), &s.db.ends[s.partOf(r.event())]
	s.db.held[position] = false
	if !s.run.omit.forgetPoints {
		s.db.keepPoints(func(p int8) bool { return p <= position })
	}
	switch {
	case e.isIll():
		s.relay.mode = store
		if !s.run.omit.releasedAgain {
			e.from = min(e.from, position)
		}
	case s.isBeforeLost(position) && !s.run.omit.releasedLost:
		s.relay.mode, e.from = store, position
	}
}
