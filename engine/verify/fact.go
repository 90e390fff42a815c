package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// row is a row of the outbox.
type row struct {
	id, content, key uint64 // hashes: of topic and event id, of what must not change, of topic and key
	version          int64
	at               int64 // when the event was, in Unix seconds; the earliest time that anything says
	part             int32 // where its key belongs: an index of the view's partitions; -1: anywhere
	topic            int16 // an index of the view's topics
	state            rowState
	wire             bool // it is no event but a copy of another record
}

type rowState int8

const (
	published rowState = iota
	waiting
	held
	discarded
)

// record is a record of a topic.
type record struct {
	id, content, key uint64
	version          int64
	at               int64
	offset           int64
	part             int32
	ours             bool // it says that this service wrote it
	wire             bool // it is no event but a copy of another record
	again            bool // an earlier record has its id
	handled          bool // the consumer has a handler for its type, or cannot know the type
	old              bool // from before what is to be judged
}

// remembered is a row of the inbox.
type remembered struct {
	id, hash  uint64
	offset    int64
	processed int64
	part      int32 // -1: it does not say, or lies in another topic; perhaps of a partition that is gone
	aside     bool  // given up or parked
	conflict  bool  // a record with its id and another payload was only warned of
}

// place is where a record lies.
type place struct {
	offset int64
	part   int32
}

// seed makes the hashes of one process comparable, and keeps a writer from choosing two alike.
var seed = maphash.MakeSeed()

func hashOf(parts ...string) uint64 {
	var h hasher
	h.SetSeed(seed)
	for _, p := range parts {
		h.text(p)
	}
	return h.Sum64()
}

// hasher keeps "ab", "c" and "a", "bc" apart.
type hasher struct{ maphash.Hash }

func (h *hasher) text(s string) {
	h.number(int64(len(s)))
	_, _ = h.WriteString(s)
}

func (h *hasher) bytes(b []byte) {
	h.number(int64(len(b)))
	_, _ = h.Write(b)
}

func (h *hasher) number(n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}

// contentOf is what must be the same in the row and in each record of an event: everything but its trace headers.
func contentOf(e cloudevent.Event) uint64 {
	var h hasher
	h.SetSeed(seed)
	for _, text := range [...]string{e.ID, e.Source, e.Type, e.Key, e.DataSchema} {
		h.text(text)
	}
	h.number(e.Version)
	h.number(e.Time.UnixNano())
	h.bytes(e.Data)
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if name != cloudevent.HeaderTraceParent && name != cloudevent.HeaderTraceState {
			h.text(name)
			h.text(e.Extensions[name])
		}
	}
	return h.Sum64()
}

// wireOf is the same of a record that is no event: all its bytes, which are its identity, too.
func wireOf(w cloudevent.Wire, value []byte) uint64 {
	var h hasher
	h.SetSeed(seed)
	h.bytes(w.Key)
	h.bytes(value)
	for _, header := range w.Headers {
		h.text(header.Name)
		h.bytes(header.Value)
	}
	return h.Sum64()
}

// payloadHash is the beginning of the hash that an inbox keeps.
func payloadHash(payload []byte) uint64 {
	sum := sha256.Sum256(payload)
	return binary.BigEndian.Uint64(sum[:])
}

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

func byID(a, b row) int { return cmp.Compare(a.id, b.id) }

func byKey(a, b row) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.version, b.version))
}

func recordsByID(a, b record) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

func recordsByKey(a, b record) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

// cut splits what is sorted by id behind the items with that id.
func cut[T any](items []T, id uint64, of func(T) uint64) (these, rest []T) {
	n := 0
	for n < len(items) && of(items[n]) == id {
		n++
	}
	return items[:n], items[n:]
}
