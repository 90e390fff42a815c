// Package window is a model of how the relay reads the outbox: writers whose transactions overlap, the window between
// two snapshots, the cursor, and two relays of which one leads. Explore visits every state within the bounds.
package window

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is a rule of the protocol that a run leaves out.
type Rule string

// The rules.
const (
	None        Rule = ""
	KeyLock     Rule = "writers of a key wait for each other"
	Window      Rule = "a page holds what lies between two snapshots, not what has a higher position"
	UpperBound  Rule = "a page ends at the window's snapshot"
	OneSnapshot Rule = "all pages of a window have one snapshot"
	Unfinished  Rule = "a transaction below the newest one may be unfinished"
	StoreFirst  Rule = "the cursor passes a page when it is sent"
	Epoch       Rule = "a change of the cursor repeats the epoch"
	OneUpdate   Rule = "the epoch is compared in the statement that changes the cursor"
	FreeLock    Rule = "a leader that dies frees the lock"
)

const (
	rowCount  = 3
	pageLimit = 1
)

// keys has the key of each row.
var keys = [rowCount]int8{0, 0, 1}

// snapshot has a bit for each transaction that has ended.
type snapshot uint8

func (s snapshot) sees(xid int8) bool { return s&(1<<xid) != 0 }

type phase int8

const (
	idle phase = iota
	begun
	added
	committed
	aborted
)

// row is a transaction that adds one event.
type row struct {
	phase             phase
	xid, pos, version int8
	sent              bool
}

// cursor is the row of outbox_cursor, and what a leader knows of it.
type cursor struct {
	epoch     int8
	done, win snapshot
	open      bool
	pos       int8 // of the open window
}

type action int8

const (
	poll action = iota
	read
	check // the epoch, in a statement of its own
	store
	send
)

// relay is a process. What it does next is in its memory alone.
type relay struct {
	up, frozen, holds bool
	next              action
	cursor
	complete  bool     // the open window is published
	candidate snapshot // the window that the page is of
	from      int8     // the position that the page begins behind
	page      int8     // the row to send, from 1; 0: none
	more      bool
}

type state struct {
	rows             [rowCount]row
	xids, positions  int8
	cursor           cursor
	relays           [2]relay
	crashes, freezes int8
	faults           int8
	broken           string
}

// Bounds limit a run.
type Bounds struct{ Crashes, Freezes int8 }

// Result is what a run comes to: the property that is broken, and a shortest way there. Empty: all hold.
type Result struct {
	States int
	Broken string
	Trace  []string
}

type step struct {
	what string
	to   state
}

type parent struct {
	from int
	what string
}

// Explore visits the states of the protocol without the rule, the near ones first.
func Explore(without Rule, bounds Bounds) Result {
	start := state{crashes: bounds.Crashes, freezes: bounds.Freezes}
	start.relays[0] = relay{up: true, holds: true}
	ids, queue, parents := map[state]int{start: 0}, []state{start}, []parent{{from: -1}}
	trace := func(id int, last string) (steps []string) {
		for steps = []string{last}; id > 0; id = parents[id].from {
			steps = append(steps, parents[id].what)
		}
		slices.Reverse(steps)
		return steps
	}
	for id := 0; id < len(queue); id++ {
		s := queue[id]
		isEnd := true
		for _, next := range s.steps(without) {
			if next.to.broken != "" {
				return Result{len(queue), next.to.broken, trace(id, next.what)}
			}
			isEnd = isEnd && next.to.faults != s.faults
			if _, known := ids[next.to]; !known {
				ids[next.to] = len(queue)
				queue, parents = append(queue, next.to), append(parents, parent{id, next.what})
			}
		}
		if isEnd && !s.allSent() {
			return Result{len(queue), "a committed row is never sent", trace(id, "the end")}
		}
	}
	return Result{States: len(queue)}
}

func (s *state) allSent() bool {
	for _, r := range s.rows {
		if r.phase == committed && !r.sent {
			return false
		}
	}
	return true
}

func (s *state) steps(without Rule) (list []step) {
	add := func(to state, format string, args ...any) {
		list = append(list, step{fmt.Sprintf(format, args...), to})
	}
	for i := range s.rows {
		s.addWriter(i, without, add)
	}
	for i := range s.relays {
		s.addRelay(i, without, add)
		s.addFaults(i, without, add)
	}
	return list
}

type adder func(to state, format string, args ...any)

func (s *state) addWriter(i int, without Rule, add adder) {
	to := *s
	r := &to.rows[i]
	switch r.phase {
	case idle:
		r.phase, r.xid = begun, s.xids
		to.xids++
		add(to, "transaction %d begins with row %d", r.xid, i)
	case begun:
		if s.isLocked(i) && without != KeyLock {
			return
		}
		to.positions++
		r.phase, r.pos, r.version = added, to.positions, s.nextVersion(i)
		add(to, "row %d is added at position %d, version %d", i, r.pos, r.version)
	case added:
		r.phase = committed
		add(to, "row %d commits", i)
		if i == rowCount-1 {
			r.phase = aborted
			add(to, "row %d rolls back", i)
		}
	}
}

func (s *state) isLocked(i int) bool {
	for n, r := range s.rows {
		if n != i && keys[n] == keys[i] && r.phase == added {
			return true
		}
	}
	return false
}

func (s *state) nextVersion(i int) int8 {
	version := int8(1)
	for n, r := range s.rows {
		if n != i && keys[n] == keys[i] && (r.phase == committed || r.phase == added) {
			version++
		}
	}
	return version
}

// now is a snapshot of the database.
func (s *state) now(without Rule) (ended snapshot) {
	newest := int8(-1)
	for _, r := range s.rows {
		if r.phase >= committed {
			ended |= 1 << r.xid
			newest = max(newest, r.xid)
		}
	}
	if without == Unfinished { // all below the newest one count as ended
		ended = 1<<(newest+1) - 1
	}
	return ended
}

func (s *state) addRelay(i int, without Rule, add adder) {
	if r := s.relays[i]; !r.up || r.frozen {
		return
	}
	to := *s
	r := &to.relays[i]
	switch r.next {
	case poll:
		if to.choose(r, without) {
			add(to, "relay %d polls", i)
		}
	case read:
		to.readPage(r, without)
		add(to, "relay %d reads a page behind %d: row %d", i, r.from, r.page-1)
	case check:
		if r.next = store; s.cursor.epoch != r.epoch {
			*r = relay{}
		}
		add(to, "relay %d compares the epoch", i)
	case store:
		to.storeCursor(r, without)
		add(to, "relay %d stores the cursor", i)
	case send:
		to.sendPage(r)
		add(to, "relay %d sends row %d", i, s.relays[i].page-1)
	}
}

// choose begins a round: with the open window, a new one, or the store that closes a published one.
func (s *state) choose(r *relay, without Rule) (isRound bool) {
	now, newest := s.now(without), r.done
	if r.open {
		newest = r.win
	}
	switch {
	case r.open && !r.complete:
		r.candidate, r.from = r.win, r.pos
		if without == OneSnapshot {
			r.candidate = now
		}
	case now != newest:
		r.candidate, r.from = now, 0
		if without == Window {
			r.from = r.pos
		}
	case r.open:
		r.page, r.next = 0, storing(without)
		return true
	default:
		return false
	}
	r.next = read
	return true
}

func storing(without Rule) action {
	if without == OneUpdate {
		return check
	}
	return store
}

// after is the snapshot that the candidate window begins from.
func (r *relay) after() snapshot {
	if r.open && r.complete {
		return r.win
	}
	return r.done
}

func (s *state) readPage(r *relay, without Rule) {
	var found []int
	for i, row := range s.rows {
		isNew := r.candidate.sees(row.xid) && !r.after().sees(row.xid)
		switch without {
		case Window:
			isNew = true
		case UpperBound:
			isNew = !r.after().sees(row.xid)
		}
		if row.phase == committed && isNew && row.pos > r.from {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Compare(s.rows[a].pos, s.rows[b].pos) })
	r.page, r.more = 0, len(found) > pageLimit
	switch {
	case len(found) > 0:
		r.page, r.next = int8(found[0]+1), storing(without)
	case r.open && !r.complete:
		r.complete, r.next = true, poll
	case r.open: // the window behind the open one is empty: that one is closed
		r.next = storing(without)
	default:
		r.done, r.next = r.candidate, poll
	}
}

func (s *state) storeCursor(r *relay, without Rule) {
	if without != Epoch && without != OneUpdate && s.cursor.epoch != r.epoch {
		*r = relay{}
		return
	}
	if r.open && r.complete {
		r.done = r.win
	}
	r.open, r.complete, r.next = r.page > 0, false, poll
	if r.page > 0 {
		r.win, r.pos, r.next = r.candidate, r.from, send
	}
	if without == StoreFirst && r.page > 0 {
		r.pos = s.rows[r.page-1].pos
	}
	if s.cursor.done&^r.done != 0 {
		s.broken = "the cursor goes back"
	}
	epoch := s.cursor.epoch
	s.cursor = r.cursor
	s.cursor.epoch = epoch
}

func (s *state) sendPage(r *relay) {
	row := &s.rows[r.page-1]
	if row.sent && s.faults == 0 {
		s.broken = "a row is sent twice, and nothing has failed"
	}
	for i, other := range s.rows {
		isBefore := keys[i] == keys[r.page-1] && other.phase == committed && other.version < row.version
		if !row.sent && isBefore && !other.sent {
			s.broken = "a version is sent before the one below it"
		}
	}
	row.sent = true
	r.pos, r.complete, r.page, r.next = row.pos, !r.more, 0, poll
}

func (s *state) addFaults(i int, without Rule, add adder) {
	r := s.relays[i]
	if r.up && s.crashes > 0 {
		to := *s
		to.crashes, to.faults = to.crashes-1, 1
		to.relays[i] = relay{holds: without == FreeLock}
		add(to, "relay %d dies", i)
	}
	if r.up && !r.frozen && r.holds && s.freezes > 0 {
		to := *s
		to.freezes, to.faults = to.freezes-1, 1
		to.relays[i].frozen, to.relays[i].holds = true, false
		add(to, "relay %d freezes, and its session ends", i)
	}
	if r.frozen {
		to := *s
		to.relays[i].frozen = false
		add(to, "relay %d goes on", i)
	}
	if other := s.relays[1-i]; !r.up && !r.holds && !other.holds {
		to := *s
		to.cursor.epoch++
		to.relays[i] = relay{up: true, holds: true, cursor: to.cursor}
		add(to, "relay %d leads with epoch %d", i, to.cursor.epoch)
	}
}
