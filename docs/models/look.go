package main

import "fmt"

// addLook asks for the ends, reads from the newest valid point of each partition and looks its records up: one step.
func (s *state) addLook(l *steps) {
	n := *s
	if !s.db.looked && !s.run.asleep {
		n.resetPositions() // during the wait the running consumer notices that it is beyond the end
	}
	for p := range s.run.parts {
		if !s.run.omit.times && !s.hasValidPoint(p) {
			n.relay.mode = refused
			l.add(n, "relay refuses (A): partition %d has no valid point", p)
			return
		}
	}
	n.relay.unknown = [maxRows]record{}
	for p := range s.run.parts {
		if !s.run.omit.lookUp {
			n.lookUp(p)
		}
		if s.run.groups {
			n.relay.part[p].need = max(n.relay.part[p].need, n.committed[p])
		}
	}
	n.findIllParts()
	n.relay.unclean, n.relay.below = false, false
	n.relay.mode = store
	if n.relay.unknown != [maxRows]record{} && s.run.omit.oneTransaction {
		n.relay.mode = heal
	}
	for k := range s.run.keys {
		low, high, count := n.unknownVersions(k)
		if count > 0 && (low > n.db.keyVersion[k]+1 || high-low >= count) {
			n.relay.mode = refused // (B): a version is neither in the database nor in the log
		}
	}
	l.add(n, "relay looks: %s", n.lookResult())
}

func (s *state) lookUp(p int8) {
	for _, r := range s.log[p].records[s.readFrom(p):s.log[p].end] {
		if s.isKnown(&s.db, r) {
			continue
		}
		s.checkLoss(r)
		s.relay.unknown[r.event()] = r
		s.reported[r.event()] = true
	}
}

// isKnown reports whether the database has the record's row, or has stored its event as lost.
func (s *state) isKnown(d *database, r record) bool {
	if r == forgotten || !s.run.omit.outboxLost && d.lost[r.event()] != 0 {
		return true
	}
	i := r.position()
	return i >= d.dropped && i < d.rows && d.row[i] == row{r.event(), r.version()}
}

// points lists the points, the newest first: the cursor row, then outbox_point.
func (s *state) points() (list []point) {
	if !s.run.omit.cursorEnds {
		x := point{position: s.db.cursor}
		for p := range s.run.parts {
			x.ends[p] = s.db.ends[p].mark
		}
		list = append(list, x)
	}
	for i := s.db.points - 1; i >= 0; i-- {
		list = append(list, s.db.point[i])
	}
	return list
}

// isValid reports whether the record below the point's end still has its time.
func (s *state) isValid(x point, p int8) bool {
	if s.run.omit.times {
		return x.ends[p].end <= s.log[p].end-s.db.ends[p].sent
	}
	return !x.ends[p].lost
}

func (s *state) hasValidPoint(p int8) bool {
	for _, x := range s.points() {
		if s.isValid(x, p) {
			return true
		}
	}
	return false
}

// readFrom returns the offset where a look begins.
func (s *state) readFrom(p int8) int8 {
	for _, x := range s.points() {
		if !s.run.omit.times && s.isValid(x, p) || s.run.omit.times && x.ends[p].end <= s.log[p].end {
			return x.ends[p].end
		}
	}
	return 0
}

// unknownVersions returns the lowest and the highest version of a key's unknown records, and how many there are.
func (s *state) unknownVersions(k int8) (low, high, count int8) {
	for _, r := range s.relay.unknown {
		if r == 0 || s.key[r.event()] != k {
			continue
		}
		if count == 0 || r.version() < low {
			low = r.version()
		}
		high = max(high, r.version())
		count++
	}
	return low, high, count
}

func (s *state) lookResult() string {
	result := "ends"
	for p := range s.run.parts {
		result += fmt.Sprintf(" %d", s.log[p].end)
	}
	result += ", unknown"
	for _, r := range s.relay.unknown {
		if r != 0 {
			result += " " + s.name(r.event(), r.version())
		}
	}
	for p := range s.run.parts {
		if part := s.relay.part[p]; part.from >= 0 {
			result += fmt.Sprintf(", partition %d is ill from row %d, last pass %v", p, part.from, part.last)
		}
	}
	return result
}

// findIllParts decides for each partition whether it is ill, and from which row on a pass publishes again.
func (s *state) findIllParts() {
	points := s.points()
	for p := range s.run.parts {
		part, e, end := &s.relay.part[p], &s.db.ends[p], s.log[p].end
		part.found, part.from, part.last = mark{end: end}, -1, false
		ill := e.isIll() || end < part.need || s.relay.below || s.hasUnknown(p) ||
			!s.run.omit.times && points[0].ends[p].lost
		if !ill {
			continue
		}
		part.from = s.healFrom(points, p)
		part.last = s.run.omit.morePasses || end >= part.need
	}
}

func (s *state) hasUnknown(p int8) bool {
	for event, r := range s.relay.unknown {
		if r != 0 && s.partOf(int8(event)) == p {
			return !s.run.omit.republishLost
		}
	}
	return false
}

func (s *state) healFrom(points []point, p int8) (from int8) {
	for _, x := range points {
		if s.isValid(x, p) {
			from = x.position
			break
		}
	}
	if e := &s.db.ends[p]; e.isIll() {
		from = min(from, e.from)
	}
	return from
}

// storeLook is the transaction after a look or a pass.
func (s *state) storeLook() {
	s.deletePoints()
	if !s.run.omit.oneTransaction {
		s.healDatabase()
	}
	ill := false
	for p := range s.run.parts {
		part, e := &s.relay.part[p], &s.db.ends[p]
		part.known, e.from = part.found, part.from
		if e.isIll() {
			ill = true
		} else {
			part.need = part.known.end
			e.expected = max(e.expected, part.known.end)
		}
		part.found, part.from = mark{}, 0
	}
	s.db.looked = true
	s.storeEnds()
	if ill {
		s.beginPass()
		return
	}
	s.relay.mode = idle
	for p := range s.run.parts {
		s.relay.part[p].last = false
	}
}

// deletePoints deletes the points above the lowest row that a pass publishes again.
func (s *state) deletePoints() {
	lowest := int8(maxRows)
	for p := range s.run.parts {
		if from := s.relay.part[p].from; from >= 0 {
			lowest = min(lowest, from)
		}
	}
	s.db.keepPoints(func(x point) bool { return x.position <= lowest })
}

// healDatabase stores the unknown records as lost. It raises the keys and the rows that no page has sent above them.
func (s *state) healDatabase() {
	for k := range s.run.keys {
		low, high, count := s.unknownVersions(k)
		if count == 0 {
			continue
		}
		if !s.run.omit.renumber {
			s.renumber(k, low, high-low+1)
		}
		s.db.keyVersion[k] = max(s.db.keyVersion[k], high)
	}
	for event, r := range s.relay.unknown {
		if r != 0 {
			s.db.lost[event] = r
		}
	}
	s.relay.unknown = [maxRows]record{}
}

func (s *state) renumber(k, low, by int8) {
	for i := s.db.upTo; i < s.db.rows; i++ {
		if row := &s.db.row[i]; s.key[row.event] == k && row.version >= low {
			row.version += by
		}
	}
	if s.db.keyVersion[k] >= low {
		s.db.keyVersion[k] += by
	}
}
