package verify

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/event"
)

// fact is a row of the outbox, a record of the topic, a row of the inbox, or a key with its version.
type fact struct {
	id, key, eventType string // of a row of the inbox: without its key
	content            uint64 // a hash of what must not change
	version            int64
	position           int64 // in the outbox: the row's own, or what the record has; 0: not known
	at                 int64 // when the event was added, in Unix seconds; of the inbox: when it was processed
	place                    // of the record, or of the one that a row of the inbox names
	side               side

	state byte // of a row of the outbox: the first letter of its [relay.State]; or lost

	// Of a record.
	isOurs     bool // it names this service as its source, or the outbox has its row
	isRepeated bool // an earlier record has its id
	isHandled  bool // the consumer has a handler for its type, or cannot know the type
	isMissing  bool // it must have a row in the inbox, and has none
	isOld      bool // it is from before the time that is judged
}

type side byte

const (
	row side = iota
	record
)

type place struct {
	offset int64
	part   int32 // of a row of the inbox: -1, not known
}

// group passes the rows by version, and the records by topic-partition and offset.
func group(facts []fact, of func(fact) string, judge func(rows, records []fact)) {
	slices.SortFunc(facts, func(a, b fact) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.side, b.side), cmp.Compare(a.part, b.part),
			cmp.Compare(a.offset, b.offset), cmp.Compare(a.version, b.version))
	})
	for len(facts) > 0 {
		same := countWhile(facts, func(f fact) bool { return of(f) == of(facts[0]) })
		rows := countWhile(facts[:same], func(f fact) bool { return f.side == row })
		judge(facts[:rows], facts[rows:same])
		facts = facts[same:]
	}
}

func byID(f fact) string  { return f.id }
func byKey(f fact) string { return f.key }

func countWhile(facts []fact, has func(fact) bool) (n int) {
	for n < len(facts) && has(facts[n]) {
		n++
	}
	return n
}

// A random seed keeps a writer from choosing two values with the same hash.
var seed = maphash.MakeSeed()

func hashOf(parts ...string) (hash uint64) {
	for _, part := range parts {
		hash = 31*hash + maphash.String(seed, part)
	}
	return hash
}

// contentOf covers everything but the trace headers.
func contentOf(e event.Event, recordKey string) uint64 {
	parts := []string{
		recordKey, e.ID, e.Source, e.Type, e.Key, e.DataSchema, strconv.FormatInt(e.Version, 10),
		strconv.FormatInt(e.Time.UnixNano(), 10), string(e.Data),
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if name != event.HeaderTraceParent && name != event.HeaderTraceState {
			parts = append(parts, name, e.Extensions[name])
		}
	}
	return hashOf(parts...)
}

// shortHash returns 0 for an id that was marked without its event.
func shortHash(hash []byte) uint64 {
	if len(hash) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(hash)
}

// never is later than any record.
const never = math.MaxInt64 / 2

// addedAt prefers the time in a UUIDv7: a caller sets the business time. A record may have no time.
func addedAt(id string, otherwise time.Time) int64 {
	if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
		seconds, _ := u.Time().UnixTime()
		return seconds
	}
	if otherwise.IsZero() {
		return never
	}
	return otherwise.Unix()
}

// clocks is the allowed difference of two machines' clocks.
const clocks = 300 // seconds
