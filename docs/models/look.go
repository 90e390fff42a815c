package main

import "slices"

// addLook is one step: it asks for the ends, reads from the newest valid points and looks the records up.
func (s *state) addLook(l *steps) {
	n := *s
	if !s.db.looked && !s.run.asleep {
		n.resetPositions() // during the wait the running consumer notices that it is beyond the end
	}
	if !s.hasValidPoints() {
		n.relay.mode = refused
		l.add(n, "relay refuses (A): no point is valid")
		return
	}
	for p := range s.run.parts {
		x, _ := s.validPoint(p)
		n.lookUp(s.log[p].list()[x.ends[p].end:])
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
	l.add(n, "relay looks, unknown:%v", names{&n, n.relay.unknown[:]})
}

func (s *state) lookUp(records []record) {
	for _, r := range records {
		if s.run.omit.lookUp || s.isKnown(&s.db, r) {
			continue
		}
		s.checkLoss(r)
		s.relay.unknown[r.event()] = r
		s.reported[r.event()] = true
	}
}

func (s *state) isKnown(d *database, r record) bool {
	if r == forgotten || !s.run.omit.outboxLost && d.lost[r.event()] != 0 {
		return true
	}
	i := r.position()
	return i >= d.dropped && i < d.rows && d.row[i] == row{r.event(), r.version()}
}

// validPoint returns the newest point whose end still has the record with its time.
func (s *state) validPoint(p int8) (x point, found bool) {
	for _, x := range s.points() {
		valid := !x.ends[p].lost
		if s.run.omit.times {
			valid = x.ends[p].end <= s.log[p].end
		}
		if valid {
			return x, true
		}
	}
	return point{}, s.run.omit.times
}

func (s *state) hasValidPoints() bool {
	for p := range s.run.parts {
		if _, found := s.validPoint(p); !found {
			return false
		}
	}
	return true
}

// points lists the newest first: the cursor row, then outbox_point.
func (s *state) points() (list []point) {
	list = slices.Clone(s.db.point[:s.db.points])
	if !s.run.omit.cursorEnds {
		x := point{position: s.db.cursor}
		for p := range s.run.parts {
			x.ends[p] = s.db.ends[p].mark
		}
		list = append(list, x)
	}
	slices.Reverse(list)
	return list
}

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

func (s *state) findIllParts() {
	for p := range s.run.parts {
		part, e, end := &s.relay.part[p], &s.db.ends[p], s.log[p].end
		part.found, part.from, part.last = mark{end: end}, -1, false
		newest := s.points()[0].ends[p]
		if e.isIll() || end < part.need || s.relay.below || s.hasUnknown(p) || !s.run.omit.times && newest.lost {
			x, _ := s.validPoint(p)
			part.from = x.position
			if e.isIll() {
				part.from = min(part.from, e.from)
			}
			part.last = s.run.omit.morePasses || end >= part.need
		}
	}
}

func (s *state) hasUnknown(p int8) bool {
	return !s.run.omit.republishLost && slices.ContainsFunc(s.relay.unknown[:], func(r record) bool {
		return r != 0 && s.partOf(r.event()) == p
	})
}

func (s *state) storeLook() {
	lowest, ill := int8(maxRows), false
	if !s.run.omit.oneTransaction {
		s.healDatabase()
	}
	for p := range s.run.parts {
		part, e := &s.relay.part[p], &s.db.ends[p]
		part.known, e.from = part.found, part.from
		if e.isIll() {
			ill, lowest = true, min(lowest, e.from)
		} else {
			part.need = part.known.end
			e.expected = max(e.expected, part.known.end)
		}
		part.found, part.from = mark{}, 0
	}
	s.db.keepPoints(func(position int8) bool { return position <= lowest })
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

// healDatabase also raises the keys and the rows that no page has sent above the unknown records.
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
	for i := range s.db.rows {
		isUnsent := i >= s.db.upTo || s.db.held[i] && !s.run.omit.renumberHeld
		if row := &s.db.row[i]; isUnsent && s.key[row.event] == k && row.version >= low {
			row.version += by
		}
	}
	if s.db.keyVersion[k] >= low {
		s.db.keyVersion[k] += by
	}
}
