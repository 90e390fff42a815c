package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"example.com/twinbox/internal/event"
)

const (
	payloadBytes = 300
	idBytes      = 36
	backlogKeys  = 500
	eventType    = "com.example.bench.member-registered.v1"
	eventSource  = "/twinbox/bench"
)

// occurredAt is the business time of every event: what is measured is not what the clock costs.
var occurredAt = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// corpus makes the events of a run, the same for every variant. An event is known by its number, which its id ends in.
type corpus struct {
	topic string
	keys  int // 0: a key of its own for each event, as for signups
	// traced gives each event the trace of a sampled request.
	traced bool
	// series tells apart the events of backlogs that one database gets: there one id is one event.
	series uint16
}

func (c corpus) key(n int) string { return eventID(c.aggregate(n)) }

// aggregate is the first event of event n's key.
func (c corpus) aggregate(n int) int {
	if c.keys > 0 {
		n %= c.keys
	}
	return n
}

func (c corpus) event(n int) event.Event {
	e := event.Event{
		ID: seriesID(c.series, n), Source: eventSource, Type: eventType, Topic: c.topic, Key: c.key(n), Time: occurredAt,
		Data: payload(n),
	}
	if c.traced {
		e.Extensions = map[string]string{
			event.HeaderTraceParent: fmt.Sprintf("00-4bf92f3577b34da6a3ce%012x-00f067aa%08x-01", n+1, n+1),
		}
	}
	if c.keys == 0 {
		e.Version = 1 // a signup knows that it is its user's first event
	}
	return e
}

// message is the event as each way sends it to the broker.
func (c corpus) message(n int) *message.Message { return c.envelope(n).Message() }

// envelope is the event as ours hands it to the publisher.
func (c corpus) envelope(n int) event.Event {
	e := c.event(n)
	version := int64(1)
	if c.keys > 0 {
		version = int64(n/c.keys) + 1
	}
	return event.Event{
		ID: e.ID, Source: e.Source, Type: e.Type, Key: e.Key, Time: e.Time, Version: version, Data: e.Data,
	}
}

// envelopes are the first n, in a handful of objects: the collector looks at what is alive in each of its rounds, and a
// relay holds no such records.
func (c corpus) envelopes(n int) []*event.Event {
	list, events := make([]*event.Event, n), make([]event.Event, n)
	var ids strings.Builder
	data := make([]byte, 0, n*payloadBytes)
	for i := range events {
		events[i] = c.envelope(i)
		ids.WriteString(events[i].ID)
		data = append(data, events[i].Data...)
	}
	text := ids.String()
	id := func(i int) string { return text[i*idBytes : (i+1)*idBytes] }
	for i := range events {
		list[i] = &events[i]
		list[i].ID, list[i].Key = id(i), id(c.aggregate(i))
		list[i].Data = data[i*payloadBytes : (i+1)*payloadBytes : (i+1)*payloadBytes]
	}
	return list
}

// payload is a JSON document of payloadBytes bytes.
func payload(n int) []byte {
	doc := fmt.Sprintf(`{"number":%d,"email":"%s","name":"Ada Lovelace","note":"`, n, email(n))
	return []byte(doc + strings.Repeat("x", payloadBytes-len(doc)-2) + `"}`)
}

func email(n int) string { return fmt.Sprintf("member-%d@example.org", n) }

// eventID is a UUIDv7 whose last eight bytes are the event's number.
func eventID(n int) string { return seriesID(0, n) }

func seriesID(series uint16, n int) string {
	id := uuid.UUID{0: 0x01, 1: 0x9b, 6: 0x70}
	binary.BigEndian.PutUint16(id[2:], series)
	binary.BigEndian.PutUint64(id[8:], uint64(n)|1<<63)
	return id.String()
}

var errForeignID = errors.New("not an event of this benchmark")

// numberOf is the inverse of eventID. It allocates nothing: it runs for each record inside the timed part.
func numberOf(id string) (int, error) {
	if len(id) != idBytes {
		return 0, errForeignID
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return 0, errForeignID
	}
	return int(binary.BigEndian.Uint64(parsed[8:]) &^ (1 << 63)), nil
}
