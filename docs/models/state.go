package main

import (
	"fmt"
	"slices"
	"strings"
)

// The model's own limits: arrays make states comparable.
const (
	maxRows   = 4
	maxKeys   = 2
	maxParts  = 2
	maxLog    = 30
	maxPoints = 3
	maxItems  = 2 * maxRows // of a page or a pass: rows by position, then lost events by number
)

// record is a record of the topic: the event's number, its version and its row's position.
type record uint8

// forgotten replaces a record that can change no consumer and no look any more. Versions begin at 1.
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

// mark is an end of a partition, with the time of the record below it. lost replaces the time: that record was lost,
// so no record there has its time.
type mark struct {
	end  int8
	lost bool
}

// cutTo notes that the log lost its records from the offset on.
func (m *mark) cutTo(offset int8) { m.lost = m.lost || m.end > offset }

// point claims: the rows below position are acknowledged below the ends, and the records below the ends are of these rows.
type point struct {
	position int8
	ends     [maxParts]mark
}

type row struct{ event, version int8 }

// cursorEnd is a partition's part of outbox_cursor.ends.
type cursorEnd struct {
	mark
	expected int8 // the highest end that the partition can have
	sent     int8 // records sent since then that may be missing
	from     int8 // rows from here on are published again; -1: the partition is well
}

// database is the producer's committed database.
type database struct {
	rows       int8
	row        [maxRows]row // by position
	keyVersion [maxKeys]int8
	cursor     int8 // rows below are acknowledged
	upTo       int8 // rows below may have been sent
	ends       [maxParts]cursorEnd
	points     int8
	point      [maxPoints]point
	lost       [maxRows]record // outbox_lost, by event
	dropped    int8            // retention dropped the rows below
	looked     bool            // looked_at is this server
}

// inbox is the consumer's committed database, in strict order.
type inbox struct {
	applied    [maxRows]int8 // the version under which each event was applied; 0: not applied
	keyVersion [maxKeys]int8
	parked     [maxRows]int8 // the version under which each event is parked; 0: not parked
	point      [maxParts]mark
}

type mode int8

const (
	down mode = iota
	look
	heal // a transaction of its own only if the run asks for it
	store
	idle
	page
	pass
	refused // until a person confirms
)

func (m mode) String() string {
	return [...]string{"down", "look", "heal", "store", "idle", "page", "pass", "refused"}[m]
}

type itemState int8

const (
	unused itemState = iota
	toSend
	written
)

// item is a record of the current page or pass. lost: the log lost it again, which the relay does not see.
type item struct {
	state  itemState
	offset int8
	lost   bool
}

// relayPart is what the leader knows about a partition.
type relayPart struct {
	known mark
	need  int8 // a pass that begins at or above this end is the last one
	found mark // the end that the look found
	from  int8 // the next heal starts at this row; -1: the partition is well
	last  bool
}

// relay is the leader's memory.
type relay struct {
	mode    mode
	unclean bool
	below   bool // an offset or an end was below the known end: the log lost records
	items   [maxItems]item
	passed  int8 // the pass has sent the rows below
	part    [maxParts]relayPart
	unknown [maxRows]record // records without a row, by event
}

// state is everything that distinguishes two moments of a run.
type state struct {
	run *run

	log       [maxParts]partitionLog
	db        database
	backup    database
	hasBackup bool
	relay     relay
	late      [maxRows]record // sent by a former leader and not yet written, by event

	inbox          inbox
	inboxBackup    inbox
	hasInboxBackup bool
	position       [maxParts]int8 // of the running consumer
	committed      [maxParts]int8 // offsets in Kafka

	// Known to the model only.
	events    int8 // the number of the next event
	key       [maxRows]int8
	reported  [maxRows]bool
	lostTwice [maxKeys]bool // the key has an event that was consumed, and that neither database nor log still has
	wentBack  bool
	left      faults
	broken    string // the property that the last step broke
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

// partOf returns the partition of an event. With two partitions each key has its own.
func (s *state) partOf(event int8) int8 {
	if s.run.parts == 1 {
		return 0
	}
	return s.key[event]
}

func (e *cursorEnd) isIll() bool { return e.from >= 0 }

func (d *database) rowOf(event int8) (position int8, found bool) {
	for i := range d.rows {
		if d.row[i].event == event {
			return i, true
		}
	}
	return 0, false
}

// keepPoints deletes the other points.
func (d *database) keepPoints(keep func(point) bool) {
	all := slices.Clone(d.point[:d.points])
	d.point, d.points = [maxPoints]point{}, 0
	for _, x := range all {
		if keep(x) {
			d.point[d.points] = x
			d.points++
		}
	}
}

func (l *partitionLog) has(event int8) bool {
	for _, r := range l.records[:l.end] {
		if r != forgotten && r.event() == event {
			return true
		}
	}
	return false
}

// name writes an event: a2#3 is event 3, version 2 of key a.
func (s *state) name(event, version int8) string {
	return fmt.Sprintf("%c%d#%d", 'a'+s.key[event], version, event+1)
}

func (s *state) String() string {
	var b strings.Builder
	for p := range s.run.parts {
		fmt.Fprintf(&b, "log %d:", p)
		for _, r := range s.log[p].records[:s.log[p].end] {
			if r == forgotten {
				b.WriteString(" .")
				continue
			}
			b.WriteString(" " + s.name(r.event(), r.version()))
		}
		b.WriteString("; ")
	}
	b.WriteString("rows:")
	for _, row := range s.db.row[:s.db.rows] {
		b.WriteString(" " + s.name(row.event, row.version))
	}
	fmt.Fprintf(&b, "; cursor %d, up to %d", s.db.cursor, s.db.upTo)
	for p := range s.run.parts {
		e := s.db.ends[p]
		fmt.Fprintf(&b, "; partition %d: end %d, expected %d, from %d, known %d, need %d, consumer at %d", p, e.end,
			e.expected, e.from, s.relay.part[p].known.end, s.relay.part[p].need, s.position[p])
	}
	b.WriteString("; points:")
	for _, x := range s.db.point[:s.db.points] {
		fmt.Fprintf(&b, " (%d, %d)", x.position, x.ends[0].end)
	}
	fmt.Fprintf(&b, "; relay %v; applied %v", s.relay.mode, s.inbox.applied)
	return b.String()
}
