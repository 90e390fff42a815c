package inbox

import (
	"cmp"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/twinbox/internal/event/cloudevent"
)

// entry is what the inbox remembers of an event, beside where its record lay.
type entry struct {
	id            string
	place         time.Time // where among the partitions the id lies: a function of the id alone
	at            time.Time // when the event was, which decides whether the inbox still remembers that time
	typ           string
	hash          []byte  // empty: nothing is known but the id
	correlationID string  // empty: the id
	outcome       Outcome // what the row says; empty: applied
}

func newEntry(event *cloudevent.Event) entry {
	hash := sha256.Sum256(event.Data)
	e := entry{id: event.ID, place: place(event.ID), typ: event.Type, hash: hash[:]}
	if e.at = e.place; e.place.Equal(foreign) {
		e.at = event.Time
	}
	if id := event.CorrelationID(); id != event.ID { // that of a first event is its id, which stands beside it
		e.correlationID = id
	}
	return e
}

// bareEntry is the entry of an id of which nothing else is known.
func bareEntry(id string) entry {
	e := newEntry(&cloudevent.Event{ID: id, Time: time.Now().UTC()})
	e.hash = []byte{}
	return e
}

// appendMetadata writes the JSON beside an entry, by hand because it is written with every event. Its outcome is what
// the event comes to if nothing keeps its handler from running; the few rows for which that proves wrong are corrected
// in the same transaction. Its processing_time is when, by this process's clock, the transaction took the event up:
// next to processed_at, the database's clock, it shows a clock that is wrong.
func (it *item) appendMetadata(to []byte, now time.Time) []byte {
	to = append(to, `{"processing_time":"`...)
	to = append(now.UTC().AppendFormat(to, time.RFC3339Nano), '"')
	to = append(append(append(to, `,"outcome":"`...), cmp.Or(it.entry.outcome, Applied)...), '"')
	if len(it.entry.hash) == 0 {
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

// encodeAll is appendMetadata for many, in one piece of memory.
func encodeAll(items []*item) []string {
	now, buffer, ends := time.Now(), make([]byte, 0, 192*len(items)), make([]int, len(items))
	for i, it := range items {
		buffer = it.appendMetadata(buffer, now)
		ends[i] = len(buffer)
	}
	whole, start, encoded := string(buffer), 0, make([]string, len(items))
	for i, end := range ends {
		encoded[i], start = whole[start:end], end
	}
	return encoded
}

// foreign is the place of all ids that carry no time. Were it the event's own time, an id that comes back with another
// ce_time would be looked for in another partition and be applied twice; see docs/adr/0007-one-place-per-event-id.md.
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

// column is an array parameter that points into what there is. A slice would do, but pgx copies each of its elements to
// the heap to look at it: with the inbox's columns eight of the 28 allocations per event of BenchmarkInbox at batch
// 200. Pointers need none.
type column[V any] struct {
	length int
	at     func(i int) V // a pointer
}

func columnOf[V any](items []*item, of func(*item) V) column[V] {
	return column[V]{len(items), func(i int) V { return of(items[i]) }}
}

func textColumn(texts []string) column[*textValue] {
	return column[*textValue]{len(texts), func(i int) *textValue { return (*textValue)(&texts[i]) }}
}

// Dimensions implements [pgtype.ArrayGetter].
func (c column[V]) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(c.length), LowerBound: 1}}
}

// Index implements [pgtype.ArrayGetter].
func (c column[V]) Index(i int) any { return c.at(i) }

// IndexType implements [pgtype.ArrayGetter].
func (column[V]) IndexType() any {
	var v V
	return v
}

type (
	textValue  string
	timeValue  time.Time
	bytesValue []byte
)

// TextValue implements [pgtype.TextValuer].
func (t *textValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*t), Valid: true}, nil
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (t *timeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*t), Valid: true}, nil
}

// BytesValue implements [pgtype.BytesValuer].
func (b *bytesValue) BytesValue() ([]byte, error) { return *b, nil }

func idOf(it *item) *textValue    { return (*textValue)(&it.entry.id) }
func typeOf(it *item) *textValue  { return (*textValue)(&it.entry.typ) }
func placeOf(it *item) *timeValue { return (*timeValue)(&it.entry.place) }
func timeOf(it *item) *timeValue  { return (*timeValue)(&it.entry.at) }
func hashOf(it *item) *bytesValue { return (*bytesValue)(&it.entry.hash) }
