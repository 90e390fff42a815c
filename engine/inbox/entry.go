package inbox

import (
	"cmp"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// entry is what the inbox remembers of an event.
type entry struct {
	id    string
	place time.Time // where among the partitions the id lies: a function of the id alone
	at    time.Time // when the event was, which decides whether the inbox still remembers that time
	typ   string
	hash  []byte

	correlationID string  // empty: the id
	outcome       Outcome // what the row is to say; empty: applied
	bare          bool    // nothing is known but the id
}

// appendMetadata writes the JSON beside an entry, by hand because it is written with every event. Its outcome is what
// the event comes to if nothing keeps its handler from running; the few rows for which that proves wrong are corrected
// in the same transaction. Its processing_time is when, by this process's clock, the transaction took the event up:
// next to processed_at, the database's clock, it shows a clock that is wrong.
func (it *item) appendMetadata(to []byte, now time.Time) []byte {
	to = append(to, `{"processing_time":"`...)
	to = append(now.UTC().AppendFormat(to, time.RFC3339Nano), '"')
	to = append(append(append(to, `,"outcome":"`...), cmp.Or(it.entry.outcome, Applied)...), '"')
	if it.entry.bare {
		return append(to, '}')
	}
	to = strconv.AppendInt(append(to, `,"partition":`...), int64(it.origin.Partition), 10)
	to = strconv.AppendInt(append(to, `,"offset":`...), it.origin.Offset, 10)
	for _, text := range [...]struct{ name, value string }{
		{`,"group":`, it.origin.Group},
		{`,"topic":`, it.origin.Topic},
		{`,"correlation_id":`, it.entry.correlationID},
	} {
		if text.value != "" {
			// The error says that something was no UTF-8 and has been replaced, which is what is wanted here.
			to, _ = jsontext.AppendQuote(append(to, text.name...), text.value)
		}
	}
	return append(to, '}')
}

func newEntry(event cloudevent.Event) entry {
	hash := sha256.Sum256(event.Data)
	e := bareEntry(event.ID)
	if e.place.Equal(foreign) {
		e.at = event.Time
	}
	e.typ, e.hash, e.bare = event.Type, hash[:], false
	if id := event.CorrelationID(); id != event.ID { // that of a first event is its id, which stands beside it
		e.correlationID = id
	}
	return e
}

// bareEntry is the entry of an id of which nothing else is known.
func bareEntry(id string) entry {
	e := entry{id: id, place: place(id), hash: []byte{}, bare: true}
	e.at = e.place
	if e.place.Equal(foreign) {
		e.at = time.Now().UTC()
	}
	return e
}

// foreign is the place of all ids that carry no time. Were it the event's own time, an id that comes back with another
// ce_time would be looked for in another partition and be applied twice; see docs/adr/0030-one-place-per-id.md.
var foreign = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// firstDay is where the days begin in migrations/inbox; a UUIDv7 from before is a counter or a joke, not a time.
var firstDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// place is the time inside a UUIDv7, to the millisecond, and foreign for every other id.
func place(id string) time.Time {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return foreign
	}
	ms := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
	at := time.UnixMilli(ms).UTC()
	if at.Before(firstDay) {
		return foreign
	}
	return at
}
