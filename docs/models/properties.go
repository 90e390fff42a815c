package main

import "fmt"

// checkVersion is D1: no two visible events have the same version of a key. A record makes its event visible.
func (s *state) checkVersion(r record) {
	k := s.key[r.event()]
	if s.lostTwice[k] || s.run.onlyReports {
		return
	}
	for other := range s.events {
		if other != r.event() && s.key[other] == k && s.isVisible(other, r.version()) {
			s.broken = fmt.Sprintf("D1: %s and %s are both visible", s.name(other, r.version()), s.name(r.event(), r.version()))
		}
	}
}

func (s *state) isVisible(event, version int8) bool {
	if s.inbox.applied[event] == version || s.inbox.parked[event] == version {
		return true
	}
	log := &s.log[s.partOf(event)]
	for _, r := range log.records[:log.end] {
		if r != forgotten && r.event() == event && r.version() == version {
			return true
		}
	}
	return false
}

// checkLoss is D3: an event is reported as lost only if the database went back and has no row of it.
func (s *state) checkLoss(r record) {
	i, found := s.db.rowOf(r.event())
	if !s.wentBack || found && s.db.row[i].version == r.version() {
		s.broken = fmt.Sprintf("D3: %s is reported as lost and is not", s.name(r.event(), r.version()))
	}
}

// checkEnd returns the property that is broken when only faults are left, or "".
func (s *state) checkEnd() string {
	if s.relay.mode == refused {
		if s.left.losses == s.run.losses || !s.wentBack && s.run.drop == 0 {
			return "D3: the relay refuses without cause"
		}
		return ""
	}
	n := *s
	n.resetPositions()
	for p := range s.run.parts {
		n.readAll(p)
	}
	switch {
	case s.relay.mode != idle:
		return fmt.Sprintf("S1: the relay waits for ever: %v", s.relay.mode)
	case s.events < s.run.events && s.db.rows < maxRows:
		return "" // a writer can commit
	case s.db.cursor != s.db.rows:
		return "S1: the relay leaves rows unpublished"
	}
	if broken := n.checkRows(); broken != "" {
		return broken
	}
	for event := range n.events {
		if broken := n.checkEvent(event); broken != "" && !s.lostTwice[s.key[event]] {
			return broken
		}
	}
	return ""
}

// checkRows is D2 for the rows: the consumer applies each event.
func (s *state) checkRows() string {
	for _, row := range s.db.row[:s.db.rows] {
		if s.inbox.applied[row.event] != 0 || s.lostTwice[s.key[row.event]] || s.run.onlyReports {
			continue
		}
		if s.inbox.parked[row.event] != 0 {
			return fmt.Sprintf("D2: %s is parked for ever", s.name(row.event, row.version))
		}
		return fmt.Sprintf("D2: %s is never applied", s.name(row.event, row.version))
	}
	return ""
}

// checkEvent is D2 for events without a row, and D4: the relay reports published events that the database lost.
func (s *state) checkEvent(event int8) string {
	if s.inbox.parked[event] != 0 && !s.run.onlyReports {
		return fmt.Sprintf("D2: #%d is parked for ever", event+1)
	}
	if _, found := s.db.rowOf(event); !found && !s.reported[event] && s.log[s.partOf(event)].has(event) {
		return fmt.Sprintf("D4: #%d was published, is lost, and no look reports it", event+1)
	}
	return ""
}

// simplify makes states equal that differ only in what no step and no property will ever see.
func (s *state) simplify() {
	if s.run.everyRead {
		return
	}
	left := s.left
	if left.losses == 0 && (left.inboxRestores == 0 || s.hasInboxBackup) {
		for p := range s.run.parts {
			s.readAll(p)
		}
	}
	if left.losses == 0 && left.restarts == 0 && left.inboxRestores == 0 {
		s.inbox.point, s.committed = [maxParts]mark{}, [maxParts]int8{}
	}
	for p := range s.log {
		log := &s.log[p]
		for i, r := range log.records[:log.end] {
			if r != forgotten && s.isSettled(r) {
				log.records[i] = forgotten
			}
		}
	}
}

// isSettled reports whether database, consumer and their backups know the record.
func (s *state) isSettled(r record) bool {
	if _, found := s.db.rowOf(r.event()); !found || !s.isKnown(&s.db, r) || s.hasBackup && !s.isKnown(&s.backup, r) {
		return false
	}
	if s.hasInboxBackup && s.inboxBackup.applied[r.event()] == 0 || !s.hasInboxBackup && s.left.inboxRestores > 0 {
		return false
	}
	return s.inbox.applied[r.event()] == r.version()
}
