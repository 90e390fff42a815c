package main

import (
	"fmt"
	"slices"
	"strings"
)

// Arrays make states comparable.
const (
	maxRows   = 4
	maxKeys   = 2
	maxParts  = 2
	maxLog    = 30
	maxPoints = 3
)

// record has the event's number, its version and its row's position.
type record uint8

// forgotten replaces a record that no consumer and no look can notice. Versions begin at 1.
const forgotten record = 0

func newRecord(event, version, position int8) record {
	return record(uint8(event) | uint8(version)<<2 | uint8(position)<<5)
}

func (r record) event() int8    { return int8(r & 3) }
func (r record) version() int8  { return int8(r >> 2 & 7) }
func (r record) position() int8 { return int8(r >> 5) }

type partitionLog struct {
	records [maxLog]record
	end     int8
}

func (l *partitionLog) list() []record { return l.records[:l.end] }

// mark is an end of a partition. If the log lost the record below it, no record there has its time again.
type mark struct {
	end  int8
	lost bool
}

func (m *mark) cutTo(offset int8) { m.lost = m.lost || m.end > offset }

// point claims: the rows below position are acknowledged below the ends, and the records there are of known events.
type point struct {
	position int8
	ends     [maxParts]mark
}

type cursorEnd struct {
	mark
	expected int8 // the highest end that the partition can have
	from     int8 // rows from here on are published again; -1: the partition is well
}

func (e *cursorEnd) isIll() bool { return e.from >= 0 }

type row struct{ event, version int8 }

type database struct {
	rows       int8
	row        [maxRows]row
	keyVersion [maxKeys]int8
	cursor     int8
	upTo       int8 // rows below may have been sent
	parked     [maxKeys]bool
	held       [maxRows]bool // the cursor has passed the row, and no page has sent it
	ends       [maxParts]cursorEnd
	points     int8
	point      [maxPoints]point
	lost       [maxRows]record // outbox_lost, by event
	dropped    int8            // retention dropped the rows below
	looked     bool            // looked_at is this server
}

type inbox struct {
	applied    [maxRows]int8 // the event's version then; 0: not applied
	keyVersion [maxKeys]int8
	parked     [maxRows]int8 // likewise
	point      [maxParts]mark
}

type mode int8

const (
	down mode = iota
	look
	heal // only in a mutant: a transaction of its own
	store
	idle
	page
	pass
	flush   // of held rows
	refused // until a person confirms
)

type item struct {
	record  record
	written bool
	refused bool // or behind a refused one of its key
	offset  int8
	lost    bool // by the log, after it was written
}

type relayPart struct {
	known mark
	need  int8 // a pass that begins below this end is not the last one
	found mark
	from  int8 // -1: well
	last  bool
}

type relay struct {
	mode    mode
	unclean bool
	below   bool // the log lost records
	items   [2 * maxRows]item
	count   int8
	passed  int8 // the pass has sent the rows below
	part    [maxParts]relayPart
	unknown [maxRows]record // by event
}

type state struct {
	run *run

	log       [maxParts]partitionLog
	db        database
	backup    database
	hasBackup bool
	relay     relay
	late      [maxRows]record // not yet written, by event

	inbox          inbox
	inboxBackup    inbox
	hasInboxBackup bool
	position       [maxParts]int8 // of the running consumer
	committed      [maxParts]int8 // its offsets in Kafka
	isAway         bool           // the consumer

	events    int8 // committed so far
	key       [maxRows]int8
	reported  [maxRows]bool
	lostTwice [maxKeys]bool // database and log both lost a consumed event of the key
	wentBack  bool
	left      faults
	broken    string
}

func initialState(r *run) state {
	s := state{run: r, left: r.faults}
	s.db.points = 1 // (0, {})
	s.db.looked = true
	for p := range s.db.ends {
		s.db.ends[p].from = -1
	}
	s.relay.mode = idle
	return s
}

// With two partitions each key has its own.
func (s *state) partOf(event int8) int8 {
	return s.partOfKey(s.key[event])
}

func (s *state) partOfKey(k int8) int8 { return min(k, s.run.parts-1) }

func (s *state) rowRecord(position int8) record {
	row := s.db.row[position]
	return newRecord(row.event, row.version, position)
}

func (s *state) hasRow(event int8) bool {
	return slices.ContainsFunc(s.db.row[:s.db.rows], func(r row) bool { return r.event == event })
}

func (s *state) hasRecord(event int8) bool {
	log := s.log[s.partOf(event)].list()
	return slices.ContainsFunc(log, func(r record) bool { return r != forgotten && r.event() == event })
}

func (d *database) newestPoint() int8 {
	if d.points == 0 {
		return -1
	}
	return d.point[d.points-1].position
}

func (d *database) keepPoints(keep func(position int8) bool) {
	all := d.point
	d.point = [maxPoints]point{}
	kept := slices.DeleteFunc(all[:d.points], func(x point) bool { return !keep(x.position) })
	d.points = int8(copy(d.point[:], kept))
}

// name writes a record: a2#3 is event 3, version 2 of key a.
func (s *state) name(r record) string {
	if r == forgotten {
		return "."
	}
	return fmt.Sprintf("%c%d#%d", 'a'+s.key[r.event()], r.version(), r.event()+1)
}

type names struct {
	*state
	records []record
}

func (n names) String() (text string) {
	for _, r := range n.records {
		text += " " + n.name(r)
	}
	return text
}

func (s *state) String() string {
	var rows []record
	for i := range s.db.rows {
		rows = append(rows, s.rowRecord(i))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rows%v, cursor %d, up to %d", names{s, rows}, s.db.cursor, s.db.upTo)
	for p := range s.run.parts {
		fmt.Fprintf(&text, "; log %d%v, stored %+v, relay %+v, consumer at %d",
			p, names{s, s.log[p].list()}, s.db.ends[p], s.relay.part[p], s.position[p])
	}
	return text.String()
}
