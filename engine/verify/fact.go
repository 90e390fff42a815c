package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// fact is what one side says of an event: a row of the outbox, a record of a topic, or a row of the inbox.
type fact struct {
	id, content, key uint64 // hashes: of topic and event id, of what must not change, of topic and key
	version          int64
	at               int64 // the earliest time that anything says, in Unix seconds; of the inbox: when it was processed
	offset           int64 // of the record; of the inbox: of the record that it was
	part             int32 // where that lies; of the outbox: where its key belongs. -1: it does not say, or anywhere

	// Of the outbox.
	state rowState
	wire  bool // it is no event but a copy of another record; a record may be one, too

	// Of a record.
	ours    bool // it says that this service wrote it
	again   bool // an earlier record has its id
	handled bool // the consumer has a handler for its type, or cannot know the type
	old     bool // from before what is to be judged

	// Of the inbox.
	aside    bool // given up or parked
	conflict bool // a record with its id and another payload was only warned of
}

// rowState is what became of a row of the outbox, as it is selected.
type rowState int8

const (
	published rowState = iota
	waiting
	held
	discarded
)

// place is where a record lies.
type place struct {
	offset int64
	part   int32
}

func (f fact) place() place { return place{f.offset, f.part} }

func byID(a, b fact) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

func byVersion(a, b fact) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.version, b.version))
}

func byPlace(a, b fact) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

// pairs sorts two sides by their ids, and has judged what each of them says of one id.
func pairs(here, there []fact, judge func(these, those []fact)) {
	slices.SortFunc(here, byID)
	slices.SortFunc(there, byID)
	for len(here)+len(there) > 0 {
		id := uint64(math.MaxUint64)
		for _, side := range [][]fact{here, there} {
			if len(side) > 0 {
				id = min(id, side[0].id)
			}
		}
		these, those := countOf(here, id), countOf(there, id)
		judge(here[:these], there[:those])
		here, there = here[these:], there[those:]
	}
}

// countOf is how many facts a sorted side begins with that have an id.
func countOf(facts []fact, id uint64) (n int) {
	for n < len(facts) && facts[n].id == id {
		n++
	}
	return n
}

// seed makes the hashes of one process comparable, and keeps a writer from choosing two alike.
var seed = maphash.MakeSeed()

// hashOf keeps "ab", "c" and "a", "bc" apart.
func hashOf(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range parts {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		_, _ = h.Write(length[:])
		_, _ = h.WriteString(p)
	}
	return h.Sum64()
}

// contentOf is what must be the same in the row and in each record of an event: everything but its trace headers.
func contentOf(e cloudevent.Event) uint64 {
	parts := []string{
		e.ID, e.Source, e.Type, e.Key, e.DataSchema, strconv.FormatInt(e.Version, 10),
		strconv.FormatInt(e.Time.UnixNano(), 10), string(e.Data),
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if name != cloudevent.HeaderTraceParent && name != cloudevent.HeaderTraceState {
			parts = append(parts, name, e.Extensions[name])
		}
	}
	return hashOf(parts...)
}

// wireOf is the same of a record that is no event: all its bytes, which are its identity, too.
func wireOf(w cloudevent.Wire, value []byte) uint64 {
	parts := []string{string(w.Key), string(value)}
	for _, header := range w.Headers {
		parts = append(parts, header.Name, string(header.Value))
	}
	return hashOf(parts...)
}

// payloadHash is the beginning of the hash that an inbox keeps.
func payloadHash(payload []byte) uint64 {
	sum := sha256.Sum256(payload)
	return shortHash(sum[:])
}

func shortHash(hash []byte) uint64 {
	if len(hash) < 8 { // of an id that was marked without its event
		return 0
	}
	return binary.BigEndian.Uint64(hash)
}

// never is later than any record.
const never = math.MaxInt64 / 2

// earliest is the earliest of the times, and of the one inside the id if it is a UUIDv7: a business time is what a
// caller says, and may lie in the future.
func earliest(id string, times ...time.Time) int64 {
	at := int64(never)
	for _, t := range times {
		if !t.IsZero() {
			at = min(at, t.Unix())
		}
	}
	if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
		seconds, _ := u.Time().UnixTime()
		at = min(at, seconds)
	}
	return at
}

// clocks is how far the clocks of two machines may be apart where a time decides between forgotten and lost.
const clocks = 300 // seconds
