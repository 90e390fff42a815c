package inbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/cloudevent"
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
	Group         string  `json:"group"`
	Topic         string  `json:"topic"`
	Partition     int32   `json:"partition"`
	Offset        int64   `json:"offset"`
	CorrelationID string  `json:"correlation_id,omitempty"`
	Outcome       Outcome `json:"outcome,omitempty"`
	// ProcessingTime is when, by this process's clock, the transaction took the event up: next to processed_at, the
	// database's clock, it shows a clock that is wrong.
	ProcessingTime time.Time `json:"processing_time"`

	bare bool // nothing else of it is known
}

func (m metadata) encode() (string, error) {
	m.ProcessingTime = time.Now().UTC()
	if m.bare {
		return `{"processing_time":"` + m.ProcessingTime.Format(time.RFC3339Nano) + `"}`, nil
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode inbox metadata: %w", err)
	}
	return string(encoded), nil
}

func newEntry(event cloudevent.Event, origin cloudevent.Origin) entry {
	hash := sha256.Sum256(event.Data)
	e := bareEntry(event.ID)
	if e.place.Equal(foreign) {
		e.at = event.Time
	}
	e.typ, e.hash = event.Type, hash[:]
	e.origin = metadata{
		Group: origin.Group, Topic: origin.Topic, Partition: origin.Partition, Offset: origin.Offset,
		CorrelationID: correlationID(event),
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

// correlationID follows the CloudEvents extension, then Watermill's own middleware.
func correlationID(event cloudevent.Event) string {
	if id := event.Extensions["ce_correlationid"]; id != "" {
		return id
	}
	return event.Extensions["correlation_id"]
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
