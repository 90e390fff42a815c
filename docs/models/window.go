package main

import "fmt"

const (
	maxTxs  = 3 // one may be foreign: it writes no row of the outbox
	winRows = 3
)

type windowRun struct {
	name, note string
	txs, rows  int8
	page       int8 // most rows of a page
	crashes    int8
	waits      bool // do not check W4
	async      bool // a crash of the server takes back commits that no later store made durable
	omit       windowOmitted
	states     int
	broken     string
}

type windowOmitted struct {
	window     bool // without: the relay reads rows above the last position
	pageStart  bool
	running    bool // without, only ids below xmin are visible
	xminDone   bool // without running: the next window begins at xmin, not at xmax
	remember   bool
	upper      bool
	byPosition bool
	storeFirst bool
}

type txState int8

const (
	unborn txState = iota
	running
	committed
	rolledBack
)

type xidSnapshot struct {
	xmax    int8
	running uint8
}

func (s xidSnapshot) sees(xid int8) bool { return xid < s.xmax && s.running&(1<<xid) == 0 }

type winRow struct{ xid, key int8 }

type winCursor struct {
	done, win xidSnapshot
	isOpen    bool
	position  int8 // rows of the window below are published
}

type winMode int8

const (
	winIdle winMode = iota
	winPolled
	winRead
	winSend
	winStoreLate
	winDown
)

type window struct {
	run     *windowRun
	tx      [maxTxs]txState // by transaction id
	txs     int8
	row     [winRows]winRow
	rows    int8
	stored  winCursor
	cursor  winCursor // in the leader's memory, with the open window that is complete or not
	full    bool
	next    winCursor
	mode    winMode
	page    [winRows]int8
	count   int8
	at      int8 // the rows of the page before are sent
	last    bool
	sent    uint8
	inLife  uint8
	again   int8
	crashes int8
	durable uint8 // only if the run asks for it
	broken  string
}

func (s *window) simplify()        {}
func (s *window) brokenBy() string { return s.broken }
func (s *window) checkEnd() string { return "" }

func (s *window) String() string {
	return fmt.Sprintf("rows %v, transactions %v, stored %+v, sent %b", s.row[:s.rows], s.tx[:s.txs], s.stored, s.sent)
}

func (s *window) name(r int8) string { return fmt.Sprintf("row %d of key %c", r, 'a'+s.row[r].key) }

func (s *window) steps(describe bool) []step[window] {
	l := stepList[window]{describe: describe}
	s.addWriters(&l)
	s.addLeader(&l)
	if s.crashes < s.run.crashes && s.mode != winDown {
		n := *s
		n.crashes++
		n.mode, n.cursor, n.next, n.full, n.last = winDown, winCursor{}, winCursor{}, false, false
		n.page, n.count, n.at, n.inLife, n.again = [winRows]int8{}, 0, 0, 0, 0
		if s.run.async {
			n.crashServer()
			l.addFault(n, "SERVER crashes")
			return l.list
		}
		l.addFault(n, "RELAY crashes")
	}
	return l.list
}

func (s *window) addWriters(l *stepList[window]) {
	if s.txs < s.run.txs {
		n := *s
		n.tx[n.txs] = running
		n.txs++
		l.addFault(n, "transaction %d takes its id", s.txs)
	}
	for xid := range s.txs {
		if s.tx[xid] != running {
			continue
		}
		for key := range int8(maxKeys) {
			if s.rows < s.run.rows && s.isFree(key, xid) && (key == 0 || s.rows > 0) {
				n := *s
				n.row[n.rows] = winRow{xid, key}
				n.rows++
				l.addFault(n, "transaction %d inserts %s", xid, n.name(s.rows))
			}
		}
		n := *s
		n.tx[xid] = committed
		l.addFault(n, "transaction %d commits", xid)
		n.tx[xid] = rolledBack
		l.addFault(n, "transaction %d rolls back", xid)
	}
}

func (s *window) isFree(key, xid int8) bool {
	for _, r := range s.row[:s.rows] {
		if r.key == key && r.xid != xid && s.tx[r.xid] == running {
			return false
		}
	}
	return true
}

func (s *window) current() xidSnapshot {
	c := xidSnapshot{xmax: s.txs}
	for xid := range s.txs {
		if s.tx[xid] != running {
			continue
		}
		if s.run.omit.running {
			if s.run.omit.xminDone {
				c.running |= 1<<s.txs - 1<<xid // none from xmin on is visible
				return c
			}
			return xidSnapshot{xmax: xid}
		}
		c.running |= 1 << xid
	}
	return c
}

func (s *window) addLeader(l *stepList[window]) {
	n := *s
	switch s.mode {
	case winDown:
		n.cursor, n.mode = s.stored, winIdle
		l.add(n, "relay leads")
	case winIdle:
		n.poll(l)
	case winPolled:
		n.read()
		l.add(n, "relay reads page %v", n.page[:n.count])
	case winRead:
		n.store()
		l.add(n, "relay stores %+v", n.stored)
	case winSend:
		if s.at < s.count {
			n.send(s.page[s.at])
			l.add(n, "relay sends %s", s.name(s.page[s.at]))
			return
		}
		n.endPage()
		l.add(n, "the page is sent")
	case winStoreLate:
		n.stored, n.mode = n.cursor, winIdle
		n.flush()
		l.add(n, "relay stores %+v", n.stored)
	}
}

func (s *window) poll(l *stepList[window]) {
	c, newest := s.current(), s.cursor.done
	if s.cursor.isOpen {
		newest = s.cursor.win
	}
	s.next = s.cursor
	switch {
	case s.cursor.isOpen && !s.full:
		if s.run.omit.remember {
			s.next.win = c
		}
	case c != newest:
		s.next = winCursor{done: newest, win: c, isOpen: true}
		if s.run.omit.window {
			s.next.position = s.cursor.position
		}
		if s.run.omit.xminDone {
			s.next.done.running = 0
		}
	case s.cursor.isOpen:
		s.cursor = winCursor{done: newest}
		if s.run.omit.window {
			s.cursor.position = s.next.position
		}
		s.stored, s.next, s.full = s.cursor, winCursor{}, false
		s.flush()
		l.add(*s, "relay closes the window")
		return
	default:
		s.next = winCursor{}
		s.checkRest()
		l.add(*s, "relay rests")
		return
	}
	s.mode = winPolled
	l.add(*s, "relay polls %+v", c)
}
