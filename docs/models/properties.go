package main

import (
	"fmt"
	"slices"
)

// checkVersion is D1: no two visible events have the same version of a key.
func (s *state) checkVersion(r record) {
	k := s.key[r.event()]
	if s.lostTwice[k] || s.run.onlyReports {
		return
	}
	for event := range s.events {
		if other := newRecord(event, r.version(), 0); event != r.event() && s.key[event] == k && s.isVisible(other) {
			s.broken = fmt.Sprintf("D1: %s and %s are both visible", s.name(other), s.name(r))
		}
	}
}

func (s *state) isVisible(this record) bool {
	event, version := this.event(), this.version()
	return s.inbox.applied[event] == version || s.inbox.parked[event] == version ||
		slices.ContainsFunc(s.log[s.partOf(event)].list(), func(r record) bool {
			return r.event() == event && r.version() == version
		})
}

// checkLoss is D3: an event is reported as lost only if the database went back and has no row of it.
func (s *state) checkLoss(r record) {
	if !s.wentBack || slices.Contains(s.db.row[:s.db.rows], row{r.event(), r.version()}) {
		s.broken = fmt.Sprintf("D3: %s is reported as lost and is not", s.name(r))
	}
}

// checkOrder is S4: behind a clean page of a last pass, each record comes after the version below.
func (s *state) checkOrder() {
	for _, this := range s.relay.items[:s.relay.count] {
		r := this.record
		p, k := s.partOf(r.event()), s.key[r.event()]
		if !s.relay.part[p].last || this.lost || this.refused || r.version() == 1 || s.lostTwice[k] {
			continue
		}
		for event := range s.events {
			if s.key[event] != k || s.versionOf(event) != r.version()-1 || s.inbox.applied[event] != 0 {
				continue
			}
			if s.waitsForHeld(event) && !s.hasRow(r.event()) {
				continue // the release of the held row begins another pass
			}
			if !slices.ContainsFunc(s.log[p].records[:this.offset], func(other record) bool {
				return other.event() == event && other.version() == r.version()-1
			}) {
				s.broken = fmt.Sprintf("S4: %s comes before the version below it", s.name(r))
			}
		}
	}
}

func (s *state) versionOf(event int8) int8 {
	for i := s.db.dropped; i < s.db.rows; i++ {
		if s.db.row[i].event == event {
			return s.db.row[i].version
		}
	}
	return s.db.lost[event].version()
}

func (s *state) checkEnd() string {
	if s.relay.mode == refused {
		if s.left.losses == s.run.losses || !s.wentBack && s.run.drop == 0 {
			return "D3: the relay refuses without cause"
		}
		return ""
	}
	n := *s
	if n.isAway {
		n.restart()
	}
	n.resetPositions()
	for p := range s.run.parts {
		n.readAll(p)
	}
	switch {
	case s.relay.mode != idle:
		return "S1: the relay waits for ever"
	case s.events < s.run.events && s.db.rows < maxRows:
		return ""
	case s.db.cursor != s.db.rows:
		return "S1: the relay leaves rows unpublished"
	case slices.Contains(s.db.held[:], true):
		return "S1: the relay leaves held rows"
	}
	if broken := n.checkRows(); broken != "" {
		return broken
	}
	for event := range n.events {
		if broken := n.checkEvent(event); broken != "" && !s.lostTwice[s.key[event]] {
			return broken
		}
	}
	return s.checkLogs()
}

// checkLogs is S5: a consumer that begins at the log's start gets the versions of each key in order.
func (s *state) checkLogs() string {
	if !s.run.mayPark() {
		return ""
	}
	for k := range s.run.keys {
		if s.lostTwice[k] {
			continue
		}
		records := slices.DeleteFunc(slices.Clone(s.log[s.partOfKey(k)].list()), func(r record) bool {
			return r == forgotten || s.key[r.event()] != k
		})
		var wanted []int8
		for _, r := range records {
			wanted = append(wanted, r.version())
		}
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
		for _, r := range records {
			if len(wanted) > 0 && r.version() == wanted[0] {
				wanted = wanted[1:]
			}
		}
		if len(wanted) > 0 {
			return fmt.Sprintf("S5: version %d of key %c comes before the one below it", wanted[0], 'a'+k)
		}
	}
	return ""
}

// checkRows is D2 for the rows: the consumer applies each event.
func (s *state) checkRows() string {
	for i, row := range s.db.row[:s.db.rows] {
		if s.inbox.applied[row.event] != 0 || s.lostTwice[s.key[row.event]] || s.run.onlyReports {
			continue
		}
		outcome := "never applied"
		if s.inbox.parked[row.event] != 0 {
			outcome = "parked for ever"
		}
		return fmt.Sprintf("D2: %s is %s", s.name(s.rowRecord(int8(i))), outcome)
	}
	return ""
}

// checkEvent is D2 for events without a row, and D4: the relay reports published events that the database lost.
func (s *state) checkEvent(event int8) string {
	if s.inbox.parked[event] != 0 && !s.run.onlyReports {
		return fmt.Sprintf("D2: #%d is parked for ever", event+1)
	}
	if !s.hasRow(event) && !s.reported[event] && s.hasRecord(event) {
		return fmt.Sprintf("D4: #%d was published, is lost, and no look reports it", event+1)
	}
	return ""
}

func (s *state) simplify() {
	if s.run.everyRead || s.isAway {
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
		for i, r := range s.log[p].list() {
			if r != forgotten && s.isSettled(r) {
				s.log[p].records[i] = forgotten
			}
		}
	}
}

func (s *state) isSettled(r record) bool {
	if s.run.mayPark() { // S5 needs all records
		return false
	}
	if !s.hasRow(r.event()) || !s.isKnown(&s.db, r) || s.hasBackup && !s.isKnown(&s.backup, r) {
		return false
	}
	if s.hasInboxBackup && s.inboxBackup.applied[r.event()] == 0 || !s.hasInboxBackup && s.left.inboxRestores > 0 {
		return false
	}
	return s.inbox.applied[r.event()] == r.version()
}
