package main

func (s *state) addReads(l *steps) {
	if s.isAway {
		return
	}
	for p := range s.run.parts {
		if s.run.everyRead && s.position[p] < s.log[p].end {
			n := *s
			n.read(p)
			n.committed[p] = max(n.committed[p], n.position[p])
			l.add(n, "consumer reads %d/%d", p, s.position[p])
		}
		if s.position[p] > s.log[p].end {
			n := *s
			n.readAgain(p)
			l.addFault(n, "consumer is beyond the end and reads partition %d again from 0", p)
		}
	}
}

func (s *state) resetPositions() {
	if s.isAway {
		return
	}
	for p := range s.run.parts {
		if s.position[p] > s.log[p].end {
			s.readAgain(p)
		}
	}
}

// readAgain puts the point back, too: who follows continues there.
func (s *state) readAgain(p int8) {
	s.position[p] = 0
	s.inbox.point[p] = mark{}
}

func (s *state) read(p int8) {
	r := s.log[p].records[s.position[p]]
	s.position[p]++
	if x := &s.inbox.point[p]; s.position[p] >= x.end {
		*x = mark{end: s.position[p]}
	}
	if r != forgotten {
		s.inbox.decide(r.event(), r.version(), &s.key)
	}
}

func (s *state) readAll(p int8) {
	for s.position[p] < s.log[p].end {
		s.read(p)
	}
}

// decide applies, parks or skips an event. A duplicate with the key's next version raises the key.
func (b *inbox) decide(event, version int8, key *[maxRows]int8) {
	k := key[event]
	next := b.keyVersion[k] + 1
	switch {
	case b.applied[event] != 0 && version != next, version < next:
		return
	case version > next:
		if b.parked[event] == 0 {
			b.parked[event] = version
		}
		return
	case b.applied[event] == 0:
		b.applied[event], b.parked[event] = version, 0
	}
	b.keyVersion[k] = version
	for other := range int8(maxRows) {
		if key[other] == k && b.parked[other] == version+1 {
			b.parked[other] = 0
			b.decide(other, version+1, key)
			return
		}
	}
}

// restart begins at the point or at Kafka's offset, whichever is lower. An invalid point means from the start.
func (s *state) restart() {
	s.isAway = false
	for p := range s.run.parts {
		x := s.inbox.point[p]
		s.position[p] = min(x.end, s.committed[p])
		if x.lost && !s.run.omit.consumerTime {
			s.readAgain(p)
		}
	}
}
