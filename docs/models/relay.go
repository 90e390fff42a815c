package main

// addCommits lets a writer commit the next event. Its key is chosen freely.
func (s *state) addCommits(l *steps) {
	if s.events >= s.run.events || s.db.rows >= maxRows {
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
		l.add(n, "commit %s at position %d", n.name(s.events, n.db.keyVersion[k]), n.db.rows)
	}
}

func (s *state) addRelay(l *steps) {
	switch s.relay.mode {
	case down:
		s.addStart(l)
	case look:
		s.addLook(l)
	case heal:
		n := *s
		n.healDatabase()
		n.relay.mode = store
		l.add(n, "relay heals the database")
	case store:
		n := *s
		n.storeLook()
		l.add(n, "relay stores the look: %v", &n)
	case idle:
		s.addPages(l)
		s.addPoint(l)
		s.addDrop(l)
		s.addIdleLook(l)
	case page:
		s.addPageEnd(l)
	case pass:
		s.addPassEnd(l)
	}
}

// addStart elects a leader. After a restore it waits until its predecessor's records are written or dead.
func (s *state) addStart(l *steps) {
	n := *s
	if !s.run.omit.wait && !s.db.looked && s.late != [maxRows]record{} {
		n.late = [maxRows]record{}
		l.add(n, "relay waits: records under way are dead")
		return
	}
	n.relay.mode = look
	n.needExpected()
	l.add(n, "relay leads")
}

func (s *state) needExpected() {
	for p := range s.relay.part {
		s.relay.part[p].need = s.db.ends[p].expected
	}
}

// addPages begins a page of every size: stores its records' expected ends, then sends.
func (s *state) addPages(l *steps) {
	for size := int8(1); size <= s.run.page && s.db.cursor+size <= s.db.rows; size++ {
		n := *s
		end := s.db.cursor + size
		n.relay.mode, n.relay.unclean, n.relay.below = page, false, false
		n.db.upTo = max(n.db.upTo, end)
		n.setItems(func(i int8) bool { return i >= s.db.cursor && i < end })
		for p := range s.run.parts {
			e := &n.db.ends[p]
			if !e.isIll() {
				e.expected, e.sent = 0, 0
			}
			n.expect(p)
		}
		n.storeEnds()
		l.add(n, "relay begins a page of %d", size)
	}
}

// expect adds the records that are due to the expected end of a partition.
func (s *state) expect(p int8) {
	count := int8(0)
	for i := range int8(maxItems) {
		if s.relay.items[i].state == toSend && s.itemPart(i) == p {
			count++
		}
	}
	e, known := &s.db.ends[p], s.relay.part[p].known.end
	e.expected = known
	if e.isIll() {
		e.expected = max(s.relay.part[p].need, known)
	}
	if !s.run.omit.expect {
		e.expected += count
	}
	e.sent += count
}

// storeEnds stores the known ends with the cursor. The end of an ill partition stays until it is healed.
func (s *state) storeEnds() {
	for p := range s.run.parts {
		if e := &s.db.ends[p]; !e.isIll() {
			e.mark = s.relay.part[p].known
		}
	}
}

// addPoint stores a point, unless a partition is ill.
func (s *state) addPoint(l *steps) {
	n := *s
	x := point{position: s.db.cursor}
	for p := range s.run.parts {
		if s.db.ends[p].isIll() {
			return
		}
		x.ends[p] = s.relay.part[p].known
	}
	newest := s.db.points - 1
	if s.db.points >= s.run.points || newest >= 0 && s.db.point[newest].position >= x.position {
		return
	}
	n.db.point[n.db.points] = x
	n.db.points++
	l.add(n, "relay stores a point: position %d", x.position)
}

// addDrop is the retention of the outbox: it drops rows below the newest point.
func (s *state) addDrop(l *steps) {
	below, newest := s.run.drop, s.db.points-1
	if s.db.dropped >= below || s.db.cursor < below || newest < 0 || s.db.point[newest].position < below {
		return
	}
	n := *s
	n.db.dropped = below
	n.db.keepPoints(func(x point) bool { return x.position >= below })
	l.add(n, "retention drops the rows and points below position %d", below)
}

// addIdleLook asks for the ends while there is no page.
func (s *state) addIdleLook(l *steps) {
	if s.run.omit.idleEnds {
		return
	}
	for p := range s.run.parts {
		known := s.relay.part[p].known.end
		if s.log[p].end == known {
			continue
		}
		n := *s
		n.relay.mode, n.relay.unclean, n.relay.below = look, true, s.log[p].end < known
		for q := range n.relay.part {
			n.relay.part[q].need = max(s.db.ends[q].expected, s.relay.part[q].known.end)
		}
		l.add(n, "relay is idle and finds another end of partition %d", p)
		return
	}
}

func (s *state) addPageEnd(l *steps) {
	if !s.isAllWritten() {
		return
	}
	n := *s
	n.takeOffsets()
	if n.relay.unclean {
		n.relay.part = s.relay.part
		n.needExpected()
		n.clearItems()
		n.relay.mode = look
		l.add(n, "page done, not clean")
		return
	}
	n.db.cursor = s.pageEnd()
	n.db.upTo = max(n.db.upTo, n.db.cursor)
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
	}
	n.storeEnds()
	n.clearItems()
	if n.relay.mode == store {
		n.findIllParts()
	}
	l.add(n, "page done, cursor at %d", n.db.cursor)
}

func (s *state) addPassEnd(l *steps) {
	if !s.isAllWritten() {
		return
	}
	n := *s
	n.takeOffsets()
	switch {
	case n.relay.unclean:
		n.needExpected()
		n.clearItems()
		n.relay.mode = look
		l.add(n, "pass done, not clean")
	case s.relay.passed < s.db.upTo:
		n.beginPassPage()
		l.add(n, "relay begins the next page of the pass")
	default:
		n.endPass()
		l.add(n, "pass done, clean")
	}
}

// endPass ends the heal of the partitions of a last pass, and asks for the ends again.
func (s *state) endPass() {
	for p := range s.run.parts {
		part, e := &s.relay.part[p], &s.db.ends[p]
		switch {
		case !e.isIll():
		case part.last:
			part.need = part.known.end
			e.expected, e.sent, e.from = part.known.end, 0, -1
		default:
			part.need = max(part.need, part.known.end)
		}
	}
	s.storeEnds()
	s.clearItems()
	s.relay.mode = store
	s.findIllParts()
}

// beginPass sends the rows of ill partitions from their from on, and all lost events there.
func (s *state) beginPass() {
	s.relay.mode, s.relay.unclean, s.relay.below = pass, false, false
	for event := range int8(maxRows) {
		if s.relay.part[s.partOf(event)].last {
			s.late[event] = 0 // assumed: no record of a former leader is written after a last pass has begun
		}
	}
	s.relay.passed = 0
	if !s.run.omit.pageFirst && !s.hasPassRows() {
		s.relay.mode = idle // the rows of the next page are what a pass can send
		return
	}
	s.beginPassPage()
}

func (s *state) hasPassRows() bool {
	for i := range s.db.upTo {
		if s.isInPass(i) {
			return true
		}
	}
	return s.hasPassLost()
}

func (s *state) hasPassLost() bool {
	for event := range int8(maxRows) {
		if s.db.lost[event] != 0 && s.isInPass(maxRows+event) {
			return true
		}
	}
	return false
}

func (s *state) isInPass(item int8) bool {
	e := &s.db.ends[s.itemPart(item)]
	if item >= maxRows {
		return !s.run.omit.republishLost && e.isIll()
	}
	return e.isIll() && item >= e.from
}

// beginPassPage begins the next page of a pass. Lost events belong between the rows of their keys: one page sends all.
func (s *state) beginPassPage() {
	first := s.relay.passed
	for first < s.db.upTo && !s.isInPass(first) {
		first++
	}
	end := min(s.db.upTo, first+s.run.page)
	if s.hasPassLost() {
		end = s.db.upTo
	}
	s.setItems(func(i int8) bool { return (i >= maxRows || i >= first && i < end) && s.isInPass(i) })
	for p := range s.run.parts {
		if s.db.ends[p].isIll() {
			s.expect(p)
		}
	}
	s.relay.passed = end
}

func (s *state) setItems(has func(item int8) bool) {
	s.relay.items = [maxItems]item{}
	for i := range int8(maxItems) {
		exists := i < s.db.rows || i >= maxRows && s.db.lost[i-maxRows] != 0
		if exists && has(i) {
			s.relay.items[i].state = toSend
		}
	}
}

func (s *state) clearItems() { s.relay.items, s.relay.passed = [maxItems]item{}, 0 }

// itemRecord is the record that an item sends.
func (s *state) itemRecord(item int8) record {
	if item < maxRows {
		return newRecord(s.db.row[item].event, s.db.row[item].version, item)
	}
	return s.db.lost[item-maxRows]
}

func (s *state) itemPart(item int8) int8 {
	if item >= maxRows {
		return s.partOf(item - maxRows)
	}
	return s.partOf(s.db.row[item].event)
}

func (s *state) isAllWritten() bool {
	for _, item := range s.relay.items {
		if item.state == toSend {
			return false
		}
	}
	return true
}

func (s *state) pageEnd() int8 {
	for i := int8(maxRows) - 1; i >= 0; i-- {
		if s.relay.items[i].state == written {
			return i + 1
		}
	}
	return s.db.cursor
}

// takeOffsets moves the known ends behind the acknowledged offsets and finds out whether these are clean.
func (s *state) takeOffsets() {
	before := s.relay.part
	var count [maxParts]int8
	for i := range int8(maxItems) {
		item, p := s.relay.items[i], s.itemPart(i)
		if item.state != written {
			continue
		}
		count[p]++
		if !s.run.omit.offsets && (item.offset < before[p].known.end || s.isOffsetTaken(i)) {
			s.relay.unclean, s.relay.below = true, true
		}
		if known := &s.relay.part[p].known; item.offset >= known.end {
			*known = mark{item.offset + 1, item.lost}
		}
	}
	for p := range s.run.parts {
		if !s.run.omit.gaps && s.relay.part[p].known.end-before[p].known.end != count[p] {
			s.relay.unclean = true
		}
	}
}

// isOffsetTaken reports whether an earlier item was acknowledged at the same offset.
func (s *state) isOffsetTaken(item int8) bool {
	for i, other := range s.relay.items[:item] {
		if other.state == written && other.offset == s.relay.items[item].offset && s.itemPart(int8(i)) == s.itemPart(item) {
			return true
		}
	}
	return false
}

// addWrites writes a record: of any key the next one, or one of a former leader.
func (s *state) addWrites(l *steps) {
	for i := range int8(maxItems) {
		if !s.maySend(i) {
			continue
		}
		n := *s
		r, p := s.itemRecord(i), s.itemPart(i)
		n.relay.items[i].state, n.relay.items[i].offset = written, s.log[p].end
		n.write(r)
		l.add(n, "%s written at %d/%d", s.name(r.event(), r.version()), p, s.log[p].end)
	}
	for event, r := range s.late {
		if r != 0 {
			n := *s
			n.late[event] = 0
			n.write(r)
			p := s.partOf(r.event())
			l.addFault(n, "late %s written at %d/%d", s.name(r.event(), r.version()), p, s.log[p].end)
		}
	}
}

func (s *state) maySend(item int8) bool {
	if s.relay.items[item].state != toSend {
		return false
	}
	r := s.itemRecord(item)
	for i := range int8(maxItems) {
		if i == item || s.relay.items[i].state != toSend {
			continue
		}
		if o := s.itemRecord(i); s.key[o.event()] == s.key[r.event()] && o.version() < r.version() {
			return false
		}
	}
	return true
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
