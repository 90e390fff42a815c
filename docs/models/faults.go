package main

func (s *state) addFaults(l *steps) {
	if s.left.crashes > 0 && s.relay.mode != down {
		n := *s
		n.left.crashes--
		n.relay = relay{}
		s.addWithLate(l, n, "RELAY crashes")
	}
	s.addRestore(l)
	if s.left.losses > 0 {
		for p := range s.run.parts {
			for end := range s.log[p].end {
				s.addLosses(l, p, end)
			}
		}
	}
	if s.left.restarts > 0 || s.isAway {
		n := *s
		n.left.restarts = max(n.left.restarts-1, 0)
		n.restart()
		l.addFault(n, "CONSUMER restarts at %v", n.position[:s.run.parts])
	}
	s.addInboxRestore(l)
}

// addWithLate adds a fault that ends the relay, and the same with a record under way.
func (s *state) addWithLate(l *steps, n state, what string) {
	l.addFault(n, "%s", what)
	if !s.run.late {
		return
	}
	for _, item := range s.relay.items[:s.relay.count] {
		if r := item.record; s.maySend(item) && s.late[r.event()] == 0 {
			m := n
			m.late[r.event()] = r
			l.addFault(m, "%s, %s is under way", what, s.name(r))
		}
	}
}

func (s *state) addRestore(l *steps) {
	if s.left.restores == 0 {
		return
	}
	n := *s
	if !s.hasBackup {
		n.hasBackup, n.backup = true, s.db
		l.addFault(n, "backup taken")
		return
	}
	n.left.restores--
	n.db, n.backup, n.hasBackup = s.backup, database{}, false
	n.db.looked = false
	n.relay = relay{}
	n.wentBack = true
	n.noteLostTwice()
	s.addWithLate(l, n, "DATABASE goes back to the backup")
}

// While the broker may lose records, addLosses takes the backup instead.
func (s *state) addInboxRestore(l *steps) {
	if s.left.inboxRestores == 0 {
		return
	}
	n := *s
	if s.hasInboxBackup {
		n.left.inboxRestores--
		n.inbox, n.inboxBackup, n.hasInboxBackup = s.inboxBackup, inbox{}, false
		n.restart()
		n.noteLostTwice()
		l.addFault(n, "CONSUMER'S DATABASE goes back, it restarts at %v", n.position[:s.run.parts])
	} else if s.left.losses == 0 {
		n.hasInboxBackup, n.inboxBackup = true, s.inbox
		l.addFault(n, "consumer's backup taken")
	}
}

// The consumer may have read any of the lost records before.
func (s *state) addLosses(l *steps, p, end int8) {
	if s.run.everyRead {
		s.addCuts(l, *s, p, end)
		return
	}
	n := *s
	for q := range s.run.parts {
		if q != p { // the consumer reads the other partition's records sooner or later
			n.readAll(q)
			n.committed[q] = n.position[q]
		}
	}
	reads := []state{n}
	for n.position[p] < n.log[p].end {
		n.read(p)
		reads = append(reads, n)
	}
	for i, n := range reads {
		if i > 0 && n.position[p] <= end && i < len(reads)-1 && s.left.inboxRestores == 0 {
			continue
		}
		s.addCuts(l, n, p, end)
		if s.left.inboxRestores > 0 && !n.hasInboxBackup {
			n.hasInboxBackup = true
			for _, earlier := range reads[:i+1] {
				n.inboxBackup = earlier.inbox
				s.addCuts(l, n, p, end)
			}
		}
	}
}

func (s *state) addCuts(l *steps, n state, p, end int8) {
	highest := max(n.position[p], n.committed[p])
	if s.run.restarts == 0 && s.run.inboxRestores == 0 && !s.run.away {
		highest = n.committed[p] // no consumer asks for it
	}
	for offset := n.committed[p]; offset <= highest; offset++ {
		m := n
		m.committed[p] = offset
		m.left.losses--
		m.cut(p, end)
		l.addFault(m, "BROKER loses all from %d/%d on; consumer at %d, committed %d", p, end, m.position[p], offset)
	}
}

func (s *state) cut(p, end int8) {
	log := &s.log[p]
	clear(log.records[end:])
	log.end = end
	s.db.cutTo(p, end)
	if s.hasBackup {
		s.backup.cutTo(p, end)
	}
	s.relay.part[p].known.cutTo(end)
	s.relay.part[p].found.cutTo(end)
	s.isAway = s.run.away
	s.inbox.point[p].cutTo(end)
	if s.hasInboxBackup {
		s.inboxBackup.point[p].cutTo(end)
	}
	for i := range s.relay.count {
		item := &s.relay.items[i]
		item.lost = item.lost || item.written && s.partOf(item.record.event()) == p && item.offset >= end
	}
	s.noteLostTwice()
}

func (d *database) cutTo(p, end int8) {
	d.ends[p].cutTo(end)
	for i := range d.points {
		d.point[i].ends[p].cutTo(end)
	}
}

func (s *state) noteLostTwice() {
	for event := range s.events {
		consumed := s.inbox.applied[event] != 0 || s.inbox.parked[event] != 0
		if consumed && !s.hasRow(event) && s.db.lost[event] == 0 && !s.hasRecord(event) {
			s.lostTwice[s.key[event]] = true
		}
	}
}
