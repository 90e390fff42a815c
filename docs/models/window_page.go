package main

import "slices"

func (s *window) read() {
	w, o := s.next, s.run.omit
	var rows []int8
	for r := range s.rows {
		xid := s.row[r].xid
		if r < w.position || s.tx[xid] != committed || !o.upper && !w.win.sees(xid) || !o.window && w.done.sees(xid) {
			continue
		}
		rows = append(rows, r)
	}
	if o.byPosition {
		slices.SortStableFunc(rows, func(a, b int8) int { return int(s.row[a].xid - s.row[b].xid) })
	}
	s.last = len(rows) < int(s.run.page)
	s.count = int8(copy(s.page[:], rows[:min(len(rows), int(s.run.page))]))
	s.mode = winRead
	if o.storeFirst {
		s.cursor, s.mode = s.next, winSend
	}
}

func (s *window) store() {
	s.cursor, s.stored, s.full, s.mode = s.next, s.next, false, winSend
	if s.run.omit.pageStart && s.count > 0 {
		s.stored.position = s.page[s.count-1] + 1
	}
	s.flush()
}

func (s *window) send(r int8) {
	s.at++
	if s.sent&(1<<r) != 0 {
		s.again++
		if s.inLife&(1<<r) != 0 || s.again > s.run.page {
			s.broken = "W3: a row is sent again, and no crash explains it"
		}
	}
	for earlier := range r { // W2: the versions of a key have the order of its rows
		if s.row[earlier].key == s.row[r].key && s.tx[s.row[earlier].xid] == committed && s.sent&(1<<earlier) == 0 {
			s.broken = "W2: a row is sent before an earlier one of its key"
		}
	}
	s.sent |= 1 << r
	s.inLife |= 1 << r
}

func (s *window) endPage() {
	if s.count > 0 {
		s.cursor.position = s.page[s.count-1] + 1
	}
	s.full = s.last
	s.mode = winIdle
	if s.run.omit.storeFirst {
		s.mode = winStoreLate
	}
	s.page, s.count, s.at, s.last, s.next = [winRows]int8{}, 0, 0, false, winCursor{}
}

// flush makes all commits durable: that of a store reaches the disk after them.
func (s *window) flush() {
	for xid := range s.txs {
		if s.run.async && s.tx[xid] == committed {
			s.durable |= 1 << xid
		}
	}
}

// crashServer takes back commits that are not durable, and checks W5.
func (s *window) crashServer() {
	for xid := range s.txs {
		if s.durable&(1<<xid) == 0 {
			s.tx[xid] = rolledBack
		}
	}
	for r := range s.rows {
		if s.sent&(1<<r) != 0 && s.tx[s.row[r].xid] != committed {
			s.broken = "W5: a row that was sent is taken back"
		}
	}
}

// checkRest is W1 and W4: a relay at rest has sent each committed row.
func (s *window) checkRest() {
	newest := s.cursor.done
	if s.cursor.isOpen {
		newest = s.cursor.win
	}
	for r := range s.rows {
		xid := s.row[r].xid
		switch {
		case s.tx[xid] != committed || s.sent&(1<<r) != 0:
		case newest.sees(xid):
			s.broken = "W1: a committed row is never sent"
		case !s.run.waits:
			s.broken = "W4: a committed row waits for an open transaction"
		}
	}
}
