package outbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
)

// recordType is the type of a row that stands for another system's record.
const recordType = "record"

// AddRecord adds a record that is no event of this service, such as the copy of a dead letter: it is published with
// this key, these headers and this value, byte for byte, and nothing is added or checked but its topic and its size.
// Order and parking are as for events; records without a key are in order among those of the same value. It is not
// republished along with events; see [Selection].
//
// Errors: [*EventError] before anything is sent, else the database's.
func (o *Outbox) AddRecord(ctx context.Context, tx pgx.Tx, topic string, wire cloudevent.Wire, value []byte) error {
	size := headerBytes + len(value) + len(wire.Key)
	for _, h := range wire.Headers {
		size += len(h.Name) + len(h.Value) + 10
	}
	switch {
	case topic == "":
		return invalid("no topic")
	case !isTopicName(topic):
		return invalid("not a topic name")
	case size > o.cfg.MaxEventBytes:
		return &EventError{Code: CodeTooLarge, Detail: "the record is larger than an event may be"}
	}
	key := string(wire.Key)
	if key == "" || len(key) > cloudevent.MaxKeyBytes || !isText(key) { // what the table orders by is text
		ordered := wire.Key
		if len(ordered) == 0 {
			ordered = value
		}
		key = fmt.Sprintf("%x", sha256.Sum256(ordered))
	}
	if value == nil {
		value = []byte{}
	}
	e := cloudevent.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "/", Type: recordType, Topic: topic, Key: key, Data: value,
		Time: time.Now(), Extensions: map[string]string{cloudevent.RecordMetadata: wire.Encode()},
	}
	_, err := o.insert(ctx, tx, []entry{{Event: e}})
	return err
}
