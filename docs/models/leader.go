package main

import "fmt"

const (
	nobody     = int8(-1)
	leaderRows = 3 // of one key
	leaderPage = 2
)

type leaderRun struct {
	name, note string
	ends       int8 // sessions that the server ends while their relay is frozen, or cut off
	deaths     int8
	proxy      bool // a new session that the relay does not notice
	omit       leaderOmitted
	states     int
	broken     string
}

type leaderOmitted struct {
	epoch       bool
	inStatement bool // in its own statement, not in one before
	sessionLock bool
	load        bool
	pageStart   bool // the row has the start of the page that is sent
	acks        bool // a record waits for the acknowledgement of the one before
	storeFirst  bool
}

type leaderMode int8

const (
	follows leaderMode = iota
	locked
	reads
	checked // only in a mutant: the epoch was read
	stores
	sends
	storesLate // only in a mutant
	dead
)

type leaderRelay struct {
	mode       leaderMode
	session    bool
	epoch      int8
	position   int8
	to         int8 // the page ends below
	landed     uint8
	remembered int8 // only in a mutant: the position of its last term
}

// A frozen relay takes no step for a while.
type leaders struct {
	run    *leaderRun
	rows   int8
	lock   int8 // the relay whose session holds it
	epoch  int8
	cursor int8
	relay  [2]leaderRelay
	sent   int8
	ends   int8
	deaths int8
	broken string
}

func (s *leaders) simplify()        {}
func (s *leaders) brokenBy() string { return s.broken }

func (s *leaders) String() string {
	return fmt.Sprintf("rows %d, sent %d, lock %d, epoch %d, cursor %d, relays %+v",
		s.rows, s.sent, s.lock, s.epoch, s.cursor, s.relay)
}

// checkEnd is L4.
func (s *leaders) checkEnd() string {
	if s.sent < leaderRows {
		return "L4: rows are left, and no relay leads"
	}
	return ""
}

func (s *leaders) steps(describe bool) []step[leaders] {
	l := stepList[leaders]{describe: describe}
	if s.rows < leaderRows {
		n := *s
		n.rows++
		l.add(n, "a writer commits row %d", s.rows)
	}
	for i := range int8(len(s.relay)) {
		s.addRelay(&l, i)
		s.addFaults(&l, i)
	}
	return l.list
}

func (s *leaders) addFaults(l *stepList[leaders], i int8) {
	if s.relay[i].session && s.ends < s.run.ends {
		n := *s
		n.ends++
		n.endSession(i)
		n.relay[i].session = s.run.proxy
		l.addFault(n, "SERVER ends the session of relay %d", i)
	}
	if s.relay[i].mode != dead && s.deaths < s.run.deaths {
		n := *s
		n.deaths++
		n.endSession(i)
		n.relay[i] = leaderRelay{mode: dead}
		l.addFault(n, "RELAY %d dies", i)
	}
}

func (s *leaders) endSession(i int8) {
	s.relay[i].session = false
	if s.lock == i && !s.run.omit.sessionLock {
		s.lock = nobody
	}
}

func (s *leaders) addRelay(l *stepList[leaders], i int8) {
	n := *s
	r := &n.relay[i]
	switch {
	case r.mode == dead:
	case r.mode == sends:
		n.addSends(l, i)
	case !r.session && r.mode == follows:
		r.session = true
		l.add(n, "relay %d connects", i)
	case !r.session:
		n.resign(i)
		l.add(n, "relay %d notices that its session has ended", i)
	case r.mode == follows:
		if s.lock == nobody {
			n.lock, r.mode = i, locked
			l.add(n, "relay %d takes the lock", i)
		}
	case r.mode == locked:
		n.epoch++
		r.epoch, r.position, r.mode = n.epoch, n.cursor, reads
		if s.run.omit.load {
			r.position = r.remembered
		}
		l.add(n, "relay %d leads in epoch %d from row %d", i, r.epoch, r.position)
	case r.mode == reads:
		n.addRead(l, i)
	case r.mode == stores && s.run.omit.inStatement:
		r.mode = checked
		if r.epoch != n.epoch {
			n.resign(i)
		}
		l.add(n, "relay %d reads the epoch", i)
	case r.mode == stores, r.mode == checked:
		at := r.position
		if s.run.omit.pageStart {
			at = r.to
		}
		n.store(i, at, sends)
		l.add(n, "relay %d stores row %d", i, at)
	case r.mode == storesLate:
		n.store(i, r.position, reads)
		l.add(n, "relay %d stores row %d behind the send", i, r.position)
	}
}

func (s *leaders) resign(i int8) {
	s.endSession(i)
	s.relay[i] = leaderRelay{remembered: s.relay[i].remembered}
}

func (s *leaders) addRead(l *stepList[leaders], i int8) {
	r := &s.relay[i]
	switch {
	case r.position < s.rows:
		r.to, r.mode = min(r.position+leaderPage, s.rows), stores
		if s.run.omit.storeFirst {
			r.mode = sends
		}
		l.add(*s, "relay %d reads rows %d to %d", i, r.position, r.to-1)
	case s.cursor != r.position || s.epoch != r.epoch:
		s.store(i, r.position, reads)
		l.add(*s, "relay %d at rest stores row %d", i, r.position)
	}
}

// store checks L1 and L2.
func (s *leaders) store(i, at int8, next leaderMode) {
	r := &s.relay[i]
	if r.epoch != s.epoch && !s.run.omit.epoch && r.mode != checked {
		s.resign(i)
		return
	}
	switch {
	case r.epoch != s.epoch:
		s.broken = "L1: a former leader changes the cursor"
	case at < s.cursor:
		s.broken = "L2: the cursor goes back"
	case at > s.sent:
		s.broken = "L2: the cursor passes a row that is not sent"
	}
	s.cursor, r.mode = at, next
}

// Sending takes no session.
func (s *leaders) addSends(l *stepList[leaders], i int8) {
	for row := s.relay[i].position; row < s.relay[i].to; row++ {
		n := *s
		r := &n.relay[i]
		if r.landed&(1<<row) != 0 {
			continue
		}
		r.landed |= 1 << row
		if row > n.sent {
			n.broken = "L3: a row is on the log before the one before it"
		}
		n.sent = max(n.sent, row+1)
		if r.landed == 1<<r.to-1<<r.position {
			r.position, r.landed, r.mode = r.to, 0, reads
			if s.run.omit.load {
				r.remembered = r.position
			}
			if s.run.omit.storeFirst {
				r.mode = storesLate
			}
		}
		l.add(n, "relay %d sends row %d", i, row)
		if !s.run.omit.acks {
			return
		}
	}
}
