package main

import "slices"

func (s *state) addCommits(l *steps) {
	if s.events == s.run.events || s.db.rows == maxRows {
		return
	}
	for k := range s.run.keys {
		if s.run.parts == 1 && k == 1 && s.events == 0 {
			break // the keys' names make no difference
		}
		n := *s
		n.key[n.events] = k
		n.db.keyVersion[k]++
		n.db.row[n.db.rows] = row{n.events, n.db.keyVersion[k]}
		n.db.rows++
		n.events++
		l.add(n, "commit %s at position %d", n.name(n.rowRecord(s.db.rows)), s.db.rows)
	}
}

func (s *state) addRelay(l *steps) {
	switch s.relay.mode {
	case down:
		s.addStart(l)
	case look:
		s.addLook(l)
		s.addBlindPage(l)
	case heal:
		n := *s
		n.healDatabase()
		n.relay.mode = store
		l.add(n, "relay heals the database")
	case store:
		n := *s
		n.storeLook()
		l.add(n, "relay stores the look")
	case idle:
		s.addPages(l)
		s.addPoint(l)
		s.addDrop(l)
		s.addIdleLook(l)
		s.addFlushes(l)
	case page:
		s.addPageEnd(l)
	case pass:
		s.addPassEnd(l)
	case flush:
		s.addFlushEnd(l)
	}
}

// After a restore the leader waits until its predecessor's records are written or dead.
func (s *state) addStart(l *steps) {
	n := *s
	if !s.run.omit.wait && !s.db.looked && s.late != [maxRows]record{} {
		n.late = [maxRows]record{}
		l.add(n, "relay waits: records under way are dead")
		return
	}
	n.lookAgain()
	l.add(n, "relay leads")
}

// lookAgain drops the page or pass. A last pass must begin at the stored expected ends.
func (s *state) lookAgain() {
	s.relay.mode = look
	for p := range s.relay.part {
		s.relay.part[p].need = s.db.ends[p].expected
	}
	for _, refused := range s.refusedItems() {
		s.relay.part[s.partOf(refused.record.event())].need--
	}
	for p := range s.relay.part {
		if part := &s.relay.part[p]; !s.run.omit.acknowledged {
			part.need = max(part.need, part.known.end)
		}
	}
	s.setItems(nil)
	s.relay.passed = 0
}

// lookAfter looks after records that are not where the log ended.
func (s *state) lookAfter(before *state) {
	s.lookAgain()
	for p := range s.relay.part {
		s.relay.part[p].known = before.relay.part[p].known
	}
}

func (s *state) setItems(records []record) {
	s.relay.items, s.relay.count = [len(s.relay.items)]item{}, int8(len(records))
	for i, r := range records {
		s.relay.items[i].record = r
	}
}

func (s *state) addPages(l *steps) {
	var records []record
	for i := s.db.cursor; i < min(s.db.rows, s.db.cursor+s.run.page); i++ {
		if !s.isParked(i) {
			records = append(records, s.rowRecord(i))
		}
		n := *s
		n.relay.mode, n.relay.unclean, n.relay.below, n.relay.passed = page, false, false, i+1
		n.db.upTo = max(n.db.upTo, i+1)
		n.setItems(records)
		for p := range s.run.parts {
			n.expect(p)
		}
		n.storeEnds()
		l.add(n, "relay begins the page%v", names{s, records})
	}
}

func (s *state) expect(p int8) {
	e, known := &s.db.ends[p], s.relay.part[p].known.end
	e.expected = known
	if e.isIll() {
		e.expected = max(s.relay.part[p].need, known)
	}
	for _, item := range s.relay.items[:s.relay.count] {
		if !s.run.omit.expect && s.partOf(item.record.event()) == p {
			e.expected++
		}
	}
}

// The end of an ill partition stays until it is healed.
func (s *state) storeEnds() {
	for p := range s.run.parts {
		if e := &s.db.ends[p]; !e.isIll() {
			e.mark = s.relay.part[p].known
		}
	}
}

func (s *state) addPoint(l *steps) {
	x := point{position: s.db.cursor}
	for p := range s.run.parts {
		if s.db.ends[p].isIll() {
			return
		}
		x.ends[p] = s.relay.part[p].known
	}
	if s.db.points < s.run.points && s.db.newestPoint() < x.position {
		n := *s
		n.db.point[n.db.points] = x
		n.db.points++
		l.add(n, "relay stores a point: position %d", x.position)
	}
}

func (s *state) addDrop(l *steps) {
	hasHeld := slices.Contains(s.db.held[:s.run.drop], true)
	if s.db.dropped < s.run.drop && s.db.newestPoint() >= s.run.drop && !hasHeld {
		n := *s
		n.db.dropped = s.run.drop
		n.db.keepPoints(func(position int8) bool { return position >= s.run.drop })
		l.add(n, "retention drops the rows and points below position %d", s.run.drop)
	}
}

func (s *state) addIdleLook(l *steps) {
	for p := range s.run.parts {
		end, known := s.log[p].end, s.relay.part[p].known.end
		if s.run.omit.idleEnds || end == known {
			continue
		}
		n := *s
		n.lookAgain()
		n.relay.unclean, n.relay.below = true, end < known
		l.add(n, "relay is idle and finds another end of partition %d: %d", p, end)
		return
	}
}

func (s *state) addPageEnd(l *steps) {
	n := *s
	if !n.takeOffsets() {
		return
	}
	if n.relay.unclean {
		n.lookAfter(s)
		l.add(n, "page done, not clean")
		return
	}
	holds := n.holdPage()
	n.db.cursor, n.relay.passed = s.relay.passed, 0
	n.relay.mode = idle
	for p := range s.run.parts {
		part := &n.relay.part[p]
		part.last = false
		if n.db.ends[p].isIll() {
			part.need = max(part.need, part.known.end)
			n.relay.mode = store
		} else {
			part.need = part.known.end
		}
		if holds {
			n.db.ends[p].expected = part.need
		}
	}
	n.storeEnds()
	n.setItems(nil)
	if n.relay.mode == store {
		n.askEnds()
	}
	l.add(n, "page done, cursor at %d", n.db.cursor)
}

func (s *state) addPassEnd(l *steps) {
	n := *s
	switch {
	case !n.takeOffsets():
	case n.relay.unclean:
		n.lookAgain()
		l.add(n, "pass done, not clean")
	default:
		n.checkOrder()
		n.holdRefused(s.passFrom())
		if s.relay.passed < s.passEnd() {
			n.beginPassPage()
			l.add(n, "relay begins the next page of the pass")
		} else {
			n.endPass()
			l.add(n, "pass done, clean")
		}
		if len(s.refusedItems()) > 0 {
			n := *s
			n.takeOffsets()
			n.lookAgain()
			l.addFault(n, "pass done, a record is not taken for now")
		}
	}
}

func (s *state) passFrom() int8 {
	from := int8(maxRows)
	for p := range s.run.parts {
		if e := s.db.ends[p]; e.isIll() {
			from = min(from, e.from)
		}
	}
	return from
}

func (s *state) endPass() {
	for p := range s.run.parts {
		part, e := &s.relay.part[p], &s.db.ends[p]
		switch {
		case !e.isIll():
		case part.last:
			part.need, e.expected, e.from = part.known.end, part.known.end, -1
		default:
			part.need = max(part.need, part.known.end)
		}
	}
	s.storeEnds()
	s.setItems(nil)
	s.relay.passed = 0
	s.askEnds()
}

func (s *state) askEnds() {
	s.relay.mode = store
	s.findIllParts()
	if !s.run.omit.pointAfterPass && !s.hasValidPoints() {
		s.lookAgain()
	}
}

func (s *state) beginPass() {
	s.relay.mode, s.relay.unclean, s.relay.below, s.relay.passed = pass, false, false, 0
	for event := range int8(maxRows) {
		if s.relay.part[s.partOf(event)].last {
			s.late[event] = 0 // assumed: no record of a former leader is written after a last pass has begun
		}
	}
	if !s.run.omit.pageFirst && len(s.passRows(0, s.passEnd())) == 0 && len(s.passLost()) == 0 {
		s.relay.mode = idle
		return
	}
	s.beginPassPage()
}

// Lost events belong between the rows of their keys: one page sends all.
func (s *state) beginPassPage() {
	first, last := s.relay.passed, s.passEnd()
	for first < last && len(s.passRows(first, first+1)) == 0 {
		first++
	}
	lost, end := s.passLost(), min(last, first+s.run.page)
	if len(lost) > 0 {
		end = last
	}
	s.setItems(append(s.passRows(first, end), lost...))
	for p := range s.run.parts {
		if s.db.ends[p].isIll() {
			s.expect(p)
		}
	}
	s.relay.passed = end
}

// A database that went back may not know that the rows before lost events were published.
func (s *state) passEnd() int8 {
	end := s.db.rows
	for end > s.db.upTo && !s.isBeforeLost(end-1) {
		end--
	}
	return end
}

func (s *state) isBeforeLost(position int8) bool {
	row := s.db.row[position]
	return !s.run.omit.rowsBeforeLost && slices.ContainsFunc(s.db.lost[:], func(r record) bool {
		return r != 0 && s.key[r.event()] == s.key[row.event] && r.version() > row.version
	})
}

func (s *state) passRows(first, end int8) (records []record) {
	for i := max(first, s.db.dropped); i < end; i++ {
		r := s.rowRecord(i)
		isSent := i < s.db.upTo || s.isBeforeLost(i)
		if e := &s.db.ends[s.partOf(r.event())]; isSent && e.isIll() && i >= e.from && !s.isBehindHeld(i) {
			records = append(records, r)
		}
	}
	return records
}

func (s *state) passLost() (records []record) {
	for _, r := range s.db.lost {
		if r != 0 && !s.run.omit.republishLost && s.db.ends[s.partOf(r.event())].isIll() {
			records = append(records, r)
		}
	}
	return records
}

func (s *state) takeOffsets() (done bool) {
	before := s.relay.part
	var count [maxParts]int8
	items := s.relay.items[:s.relay.count]
	for i, this := range items {
		if this.refused {
			continue
		}
		if !this.written {
			return false
		}
		p := s.partOf(this.record.event())
		count[p]++
		taken := slices.ContainsFunc(items[:i], func(other item) bool {
			return !other.refused && other.offset == this.offset && s.partOf(other.record.event()) == p
		})
		if !s.run.omit.offsets && (taken || this.offset < before[p].known.end) {
			s.relay.unclean, s.relay.below = true, true
		}
		if known := &s.relay.part[p].known; this.offset >= known.end {
			*known = mark{this.offset + 1, this.lost}
		}
	}
	for p := range s.run.parts {
		if !s.run.omit.gaps && s.relay.part[p].known.end-before[p].known.end != count[p] {
			s.relay.unclean = true
		}
	}
	return true
}

func (s *state) addWrites(l *steps) {
	for i, item := range s.relay.items[:s.relay.count] {
		if s.maySend(item) {
			n := *s
			p := s.partOf(item.record.event())
			n.relay.items[i].written, n.relay.items[i].offset = true, s.log[p].end
			n.write(item.record)
			l.add(n, "%s written at %d/%d", s.name(item.record), p, s.log[p].end)
		}
	}
	for event, r := range s.late {
		if r != 0 {
			n := *s
			n.late[event] = 0
			n.write(r)
			p := s.partOf(r.event())
			l.addFault(n, "late %s written at %d/%d", s.name(r), p, s.log[p].end)
		}
	}
}

func (s *state) maySend(this item) bool {
	return !this.written && !this.refused && !slices.ContainsFunc(s.relay.items[:s.relay.count], func(other item) bool {
		r := other.record
		return !other.written && s.key[r.event()] == s.key[this.record.event()] && r.version() < this.record.version()
	})
}

func (s *state) write(r record) {
	log := &s.log[s.partOf(r.event())]
	s.checkVersion(r)
	if log.end == maxLog {
		s.broken = "maxLog is too low for this run"
		return
	}
	log.records[log.end] = r
	log.end++
}
