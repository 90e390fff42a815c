package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/event"
)

const (
	payloadBytes = 300
	eventType    = "com.example.bench.member-registered.v1"
	eventSource  = "/twinbox/bench"
)

// The business time is fixed, so that reading the clock is not measured.
var occurredAt = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

type corpus struct {
	topic string
	keys  int // 0: each event has its own key, like a signup
}

func (c corpus) event(n int) event.Event {
	key, version := n, 1
	if c.keys > 0 {
		key, version = n%c.keys, n/c.keys+1
	}
	return event.Event{
		Source: eventSource, Type: eventType, Topic: c.topic, Key: idAt(occurredAt, key), Version: int64(version),
		Time: occurredAt, Data: payload(n),
	}
}

const numberIntro = `{"number":`

func payload(n int) []byte {
	doc := fmt.Sprintf(`%s%d,"email":"%s","name":"%s","note":"`, numberIntro, n, email(n), visitor)
	return []byte(doc + strings.Repeat("x", payloadBytes-len(doc)-2) + `"}`)
}

const visitor = "Ada Lovelace"

func email(n int) string { return fmt.Sprintf("member-%d@example.org", n) }

func idAt(at time.Time, n int) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], uint64(n)|1<<63)
	return id.String()
}

var errForeign = errors.New("not an event of this benchmark")

func numberOf(payload []byte) (int, error) {
	rest, found := bytes.CutPrefix(payload, []byte(numberIntro))
	if !found {
		return 0, errForeign
	}
	digits, _, _ := bytes.Cut(rest, []byte(","))
	n, err := strconv.Atoi(string(digits))
	if err != nil || n < 0 {
		return 0, errForeign
	}
	return n, nil
}
