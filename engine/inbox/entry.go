package inbox

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// entry is what the inbox remembers of an event.
type entry struct {
	id     string
	place  time.Time // where among the partitions the id lies: a function of the id alone
	at     time.Time // when the event was, which decides whether the inbox still remembers that time
	typ    string
	hash   []byte
	origin metadata
}

// metadata is the JSON beside an entry.
type metadata struct {
	group         string
	topic         string
	partition     int32
	offset        int64
	correlationID string
	outcome       Outcome // empty: applied
	bare          bool    // nothing of all that is known
}

// append writes the JSON, by hand because it is written with every event. Its outcome is what the event comes to if
// nothing keeps its handler from running; the few rows for which that proves wrong are corrected in the same
// transaction. Its processing_time is when, by this process's clock, the transaction took the event up: next to
// processed_at, the database's clock, it shows a clock that is wrong.
func (m *metadata) append(to []byte, now time.Time) []byte {
	to = append(to, `{"processing_time":"`...)
	to = append(now.UTC().AppendFormat(to, time.RFC3339Nano), '"')
	outcome := Applied
	if m.outcome != "" {
		outcome = m.outcome
	}
	to = append(append(append(to, `,"outcome":"`...), outcome...), '"')
	if m.bare {
		return append(to, '}')
	}
	to = strconv.AppendInt(append(to, `,"partition":`...), int64(m.partition), 10)
	to = strconv.AppendInt(append(to, `,"offset":`...), m.offset, 10)
	for _, text := range [...]struct{ name, value string }{
		{`,"group":`, m.group},
		{`,"topic":`, m.topic},
		{`,"correlation_id":`, m.correlationID},
	} {
		if text.value != "" {
			// The error says that something was no UTF-8 and has been replaced, which is what is wanted here.
			to, _ = jsontext.AppendQuote(append(to, text.name...), text.value)
		}
	}
	return append(to, '}')
}

func (m *metadata) encode() string { return string(m.append(make([]byte, 0, 256), time.Now())) }

// encodeAll is encode for many, in one piece of memory.
func encodeAll(items []*item) []string {
	now, buffer, ends := time.Now(), make([]byte, 0, 192*len(items)), make([]int, len(items))
	for i, it := range items {
		buffer = it.entry.origin.append(buffer, now)
		ends[i] = len(buffer)
	}
	whole, start, encoded := string(buffer), 0, make([]string, len(items))
	for i, end := range ends {
		encoded[i], start = whole[start:end], end
	}
	return encoded
}

func newEntry(event cloudevent.Event, origin cloudevent.Origin) entry {
	hash := sha256.Sum256(event.Data)
	e := bareEntry(event.ID)
	if e.place.Equal(foreign) {
		e.at = event.Time
	}
	e.typ, e.hash = event.Type, hash[:]
	e.origin = metadata{
		group: origin.Group, topic: origin.Topic, partition: origin.Partition, offset: origin.Offset,
		correlationID: carriedCorrelation(event),
	}
	return e
}

// bareEntry is the entry of an id of which nothing else is known.
func bareEntry(id string) entry {
	e := entry{id: id, place: place(id), hash: []byte{}, origin: metadata{bare: true}}
	e.at = e.place
	if e.place.Equal(foreign) {
		e.at = time.Now().UTC()
	}
	return e
}

// carriedCorrelation is empty for a first event: its correlation id is its id, which stands beside it.
func carriedCorrelation(event cloudevent.Event) string {
	if id := event.CorrelationID(); id != event.ID {
		return id
	}
	return ""
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
